"""Is everything as it must be for echod to keep its promises here? Checks that look and change nothing.

Each check says what it found in a sentence and, where something is wrong, what to do about it. How that is shown is
the command's business.
"""
