"""How much of what is secret is found, and how much of what is found is secret."""
