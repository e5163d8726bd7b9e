"""echod keeps the Markdown memory of coding agents healthy. See docs/architecture.md for the house."""

__version__ = "0.1.0"
