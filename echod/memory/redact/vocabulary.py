"""The words that stand beside "password", "token" and "key" in texts that hold no secret. All in lower case."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


STAND_INS = words("""
    your my our the a an some this that here insert put enter replace replaced with change changed changeit changeme me
    add set fill in example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized
    todo tbd na valid invalid wrong correct secure strong test testing foo bar baz qux abc xyz foobar not real
    yourpassword mypassword
""")
"""A value of these alone stands for a secret: `your-api-key-here`, `changeme`."""

GENERIC = words("""
    key keys apikey token tokens secret secrets password passwords passwd pwd passphrase credential credentials api
    access auth value string text id user username name client private p pw args opts options params kwargs data hash
    hashed salt service account field fields input type schema hasher validator manager provider store
    str bytes
""")
"""Names of secrets and of what holds them: `password=password`, `token = opts`."""

TYPES = words("""
    str string int integer number float bool boolean bytes any object null none nil undefined true false optional void
    unknown never date secretstr char varchar uuid buffer list dict array yes no on off default required
""")
"""What declarations and schemas put there."""

PROSE = words("""
    optional hashing encrypted plain plaintext plain-text missing invalid valid wrong expired expires must should may
    can cannot never always only stored use used uses using reset rotate rotated rotation forgotten forgot changes login
    authentication authorization validation policy strength field fields input prompt prompts length minimum min maximum
    max env environment variable variables config configuration see is are was were be if when for from of to and or as
    at by get read write pass passed sent ok failed fails ignored empty refresh refreshed bearer basic jwt generated
    random static same different removed via it its does do don't needs need has have contains protected authenticated
    verified checked handled managed supported needed unset vault keychain keyring bitwarden lastpass
""")
"""How sentences and notes go on after "password:"."""

SENTENCE = PROSE | words("the please enter your characters character least a an in with this that not on")
"""One of these among words in quotes makes them a message, not a passphrase."""
