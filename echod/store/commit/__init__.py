"""Apply a commit plan: stage, record the intent, archive, exchange, claim."""
