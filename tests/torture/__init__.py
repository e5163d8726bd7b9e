"""The durability proofs of docs/durability.md: schedules, kills, storms, failing calls, power loss."""
