"""The durability proofs: schedules, kills, storms, failing calls, power loss. docs/durability.md reads them aloud."""
