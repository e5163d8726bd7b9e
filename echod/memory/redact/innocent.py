"""What stands where a secret could stand and is none: placeholders, references, types, hashes, identifiers, prose.

Each question is asked of one value, already cut out of its surroundings. The answers lean towards keeping the text
where it reads as words, and towards redacting it where it looks drawn at random.
"""

from __future__ import annotations

import re

_FILLER = re.compile(r"[xX*.•_-]*|(.)\1*")

_REFERENCE = re.compile(
    r"""\$[({]                       # $(cat file), ${TOKEN}
      | \$[A-Za-z_][A-Za-z_]*[0-9]?$ # $TOKEN
      | \{\{? | %\w+%?$ | %\( | <    # {{ token }}, %TOKEN%, %(token)s, <token>
      | @\{ | \#\{ | \[ | \(
    """,
    re.VERBOSE,
)
_CODE = re.compile(
    r"""[A-Za-z_][\w.]*[(\[]         # getToken(), os.environ["TOKEN"]
      | [A-Za-z_]+(?:\??\.[A-Za-z_]\w*)+[,;]?$   # process.env.TOKEN, self.token, config?.token
      | [A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$  # API_TOKEN
    """,
    re.VERBOSE,
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+")
_DIGEST = re.compile(r"(?i)(?:sha(?:1|224|256|384|512)|md5|blake[23][bs]?)[:=_-]|ssh-|ecdsa-|encrypted:")
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\|[a-z][a-z0-9+.-]{1,20}://|(?:[\w.-]+/)+[\w.-]+\.[a-z]{1,5}$")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_PLACEHOLDER_WORDS = frozenset(
    "your my the a an some this that here insert put enter replace with change changeit changeme me add set fill in"
    " example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized"
    " todo tbd na foo bar baz qux foobar not real".split()
)
_GENERIC_WORDS = frozenset(
    "key keys token tokens secret secrets password passwords passwd pwd passphrase credential credentials api access"
    " auth value string text id user username name client private".split()
)
_TYPE_WORDS = frozenset(
    "str string int integer number float bool boolean bytes any object null none nil undefined true false optional"
    " void unknown never date secretstr char varchar uuid buffer list dict array yes no on off empty default".split()
)
_PROSE_WORDS = frozenset(
    "required optional hashed hash hashing encrypted plain plaintext plain-text missing invalid valid wrong expired"
    " expires must should may can cannot never always only stored use used uses using reset rotate rotated rotation"
    " forgotten forgot change changed login authentication authorization validation policy strength field fields"
    " input prompt prompts length minimum min max env environment variable variables config see is are was not if"
    " when for from of to and or as at by on get set read write pass passed sent ok failed fails ignored empty"
    " refresh refreshed bearer basic jwt oauth generated random static same different none removed".split()
)


def is_filler(value: str) -> bool:
    """Whether a value is one character over and over, or only crosses, stars and dots."""
    return _FILLER.fullmatch(value) is not None


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret without being one: `xxxx`, `<token>`, `$TOKEN`, `your-api-key-here`."""
    if is_filler(value) or _REFERENCE.match(value):
        return True
    words = [word.lower() for word in _PIECE.findall(value)]
    if not words:
        return not any(char.isalnum() for char in value) and len(value) < 4  # noqa: PLR2004
    return all(word in _PLACEHOLDER_WORDS or word in _GENERIC_WORDS for word in words) and not value.isdigit()


def is_code(value: str) -> bool:
    """Whether a value is an expression that only names where the secret is: a call, an attribute, a constant."""
    return _CODE.match(value) is not None


def is_type_or_prose(value: str) -> bool:
    """Whether a value is the name of a type, or a word that descriptions use after "password:"."""
    word = value.strip(".,;:!?").lower()
    return word in _TYPE_WORDS or word in _PROSE_WORDS


def is_hash(value: str) -> bool:
    """Whether a value says itself that it is a digest, a public key or a UUID."""
    return _DIGEST.match(value) is not None or _UUID.fullmatch(value) is not None


def is_hex(value: str) -> bool:
    """Whether a value is a hexadecimal number, as object names of git and checksums are."""
    return _HEX.fullmatch(value) is not None


def is_path(value: str) -> bool:
    """Whether a value is a file path or a URL whose parts are words."""
    return _PATH.match(value) is not None and not looks_random(value)


def is_word(value: str) -> bool:
    """Whether a value consists of letters alone, perhaps joined as an identifier or a slug is."""
    return re.fullmatch(r"[A-Za-z]+(?:[-_.'/][A-Za-z]+)*[.,;:!?]?", value) is not None


def looks_random(value: str, *, at_least: int = 16) -> bool:
    """Whether a value looks drawn at random: letters, digits and cases change every two or three characters.

    Words, slugs and identifiers change every four or more. `at_least` is the least length in characters.
    """
    pieces = _PIECE.findall(value)
    length = sum(map(len, pieces))
    if length < at_least or not pieces:
        return False
    kinds = any(c.isdigit() for c in value) + any(c.islower() for c in value) + any(c.isupper() for c in value)
    return kinds > 1 and length / len(pieces) < 3.4  # noqa: PLR2004
