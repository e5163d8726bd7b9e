"""Decide whether a value is a secret, given its name, the strength of that name, and its context in the line.

Most values beside a secret's name (`DB_PASSWORD`, `apiKey`, "access token") are not secrets: placeholders, references,
types, hashes, identifiers, prose. Each check here looks at one value, already cut out of its surroundings. The lists of
words that occur beside "password", "token" and "key" in texts without a secret are in lower case.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from echod.lazy import lazy_pattern

_NAME_PIECE = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD_ENDINGS = ("password", "passwd", "passwort", "pwd")
_KEY_COMPOUNDS = ("apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey", "encryptionkey")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


PLACEHOLDER_WORDS = word_set("""
    your my our the a an some this that here insert put enter replace replaced with change changed changeit changeme me
    add set fill in example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized
    todo tbd na valid invalid wrong correct secure strong test testing foo bar baz qux abc xyz foobar not real
    yourpassword mypassword
""")
"""A value that consists of these alone is a placeholder: `your-api-key-here`, `changeme`."""

GENERIC_NAMES = word_set("""
    key keys apikey token tokens secret secrets password passwords passwd pwd passphrase credential credentials api
    access auth value string text id user username name client private p pw args opts options params kwargs data hash
    hashed salt service account field fields input type schema hasher validator manager provider store
    str bytes
""")
"""Names of secrets and of the things that contain them: `password=password`, `token = opts`."""

TYPE_NAMES = word_set("""
    str string int integer number float bool boolean bytes any object null none nil undefined true false optional void
    unknown never date secretstr char varchar uuid buffer list dict array yes no on off default required
""")
"""Types and defaults that declarations and schemas have as the value."""

_NUMBERED = (
    TYPE_NAMES
    | GENERIC_NAMES
    | word_set("""
    test tests example sample dummy fake mock placeholder todo tbd wrong invalid text column col row line step option
    param arg header cookie item case level min max pr issue page table
""")
)
"""With a number or two, these are types, placeholders and places: `string2`, `field_1`, `wrong1`."""

PROSE_WORDS = word_set("""
    optional hashing encrypted plain plaintext plain-text missing invalid valid wrong expired expires must should may
    can cannot never always only stored use used uses using reset rotate rotated rotation forgotten forgot changes login
    authentication authorization validation policy strength field fields input prompt prompts length minimum min maximum
    max env environment variable variables config configuration see is are was were be if when for from of to and or as
    at by get read write pass passed sent ok failed fails ignored empty refresh refreshed bearer basic jwt generated
    random static same different removed via it its does do don't needs need has have contains protected authenticated
    verified checked handled managed supported needed unset vault keychain keyring bitwarden lastpass
""")
"""Words with which sentences and notes continue after "password:"."""

SENTENCE_WORDS = PROSE_WORDS | word_set(
    "the please enter your characters character least a an in with this that not on"
)
"""One of these among words in quotes makes them a message, not a passphrase."""


class NameStrength(Enum):
    """How strongly a name implies a secret. The weaker it is, the more the value itself must look like one."""

    PASSPHRASE = auto()
    """A passphrase: any value, even several words."""
    PASSWORD = auto()
    """Any value that is not a known false positive."""
    SHORT_PASSWORD = auto()
    """`pass` and `pw`, which name other things too: a value that mixes letters with digits or signs."""
    SECRET = auto()
    """A value that mixes letters and digits: API keys, client secrets, access tokens."""
    TOKEN = auto()
    """A long value that looks random. A hexadecimal one counts only where it is the whole value of a field."""
    KEY = auto()
    """A long value that looks random and is not hexadecimal, because caches and maps have a "key" too."""


class SecretName(NamedTuple):
    """The kind of secret that a name implies, and how strongly."""

    kind: str
    strength: NameStrength


_PASS_QUALIFIERS = word_set(
    "db database user mysql pg postgres redis mongo smtp mail ftp ssh admin root basic auth http proxy login my"
    " rabbitmq become ansible sudo bind ldap wifi vault store keystore truststore cert sa imap vnc"
)
_PASS_COMPOUNDS = word_set(
    "sshpass dbpass userpass rootpass ftppass mysqlpass pgpass smtppass keypass storepass adminpass"
)
_INNOCENT_KEY_QUALIFIERS = word_set(
    "i18n l10n locale translation message label idempotency idempotent dedupe deduplication cache query sort partition"
    " preferences preference shortcut hot object lookup react row column index hash map dictionary json yaml registry"
    " range routing group sharding shard cursor pagination int long double float string boolean bool composite unique"
    " natural surrogate candidate route menu tab feature flag config setting settings property"
)
"""Words before "key" that name the key of a table, a cache or a translation."""

_ACTIONS = word_set(
    "set get reset change update forgot forget verify validate hash compare check has is on handle use show hide toggle"
    " with no require requires confirm create generate send request need needs should can allow mask encrypt decrypt"
    " strip rotate parse read load find match prompt ask enable disable skip render write"
)
"""Words with which names of functions and switches begin: `resetPassword`, `show_password`."""

_TOKEN_QUALIFIERS = word_set("access auth api refresh bot bearer personal deploy id session client")
_KEY_QUALIFIERS = word_set(
    "api access secret private auth authentication encryption signing service account master app application client"
    " consumer shared storage deploy license server session hmac jwt aes subscription webhook bot"
)
_PUBLIC_QUALIFIERS = word_set("public publishable pub foreign primary")
_IGNORED_SUFFIXES = word_set(
    "value base base64 b64 hex prod production dev development test testing staging live old new current raw"
)


@lru_cache(maxsize=1024)  # a text has few different names, and repeats them
def classify_name(text: str) -> SecretName | None:
    """Return the secret that a name implies, judged by its last words; None if it implies none."""
    pieces = [piece.lower() for piece in _NAME_PIECE.findall(text)]
    while len(pieces) > 1 and (pieces[-1] in _IGNORED_SUFFIXES or pieces[-1].isdigit()):
        pieces.pop()
    if not pieces or not _PUBLIC_QUALIFIERS.isdisjoint(pieces):
        return None
    if pieces[-2:] in (["pass", "word"], ["pass", "phrase"]):
        pieces[-2:] = ["".join(pieces[-2:])]
    if pieces[-2:] == ["key", "data"]:  # client-key-data
        pieces.pop()
    last, qualifier = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if last in {"key", "keys"} and qualifier in _INNOCENT_KEY_QUALIFIERS:
        return None
    own = text.rpartition(" ")[2].lstrip("-_.")
    if own[:1].islower() and last.endswith(_PASSWORD_ENDINGS):
        own_pieces = _NAME_PIECE.findall(own)
        if len(own_pieces) > 1 and own_pieces[0] in _ACTIONS:
            return None
    if text.endswith("--pass"):
        return SecretName("password", NameStrength.PASSWORD)
    if last.endswith("s") and not last.endswith("ss"):
        singular = _classify_singular(last[:-1], qualifier, pieces)
        return None if singular is None else SecretName(singular.kind, NameStrength.TOKEN)
    return _classify_singular(last, qualifier, pieces)


def _classify_singular(last: str, qualifier: str, pieces: list[str]) -> SecretName | None:
    if last.endswith("passphrase"):
        return SecretName("password", NameStrength.PASSPHRASE)
    if last.endswith(_PASSWORD_ENDINGS) or (last == "pass" and qualifier in _PASS_QUALIFIERS):
        return SecretName("password", NameStrength.PASSWORD)
    if last in _PASS_COMPOUNDS or last == "psk":
        return SecretName("password", NameStrength.SHORT_PASSWORD)
    if last in {"pass", "pw"} and (len(pieces) == 1 or (last == "pw" and qualifier in _PASS_QUALIFIERS)):
        return SecretName("password", NameStrength.SHORT_PASSWORD)
    if last.endswith("secret"):
        return SecretName("secret", NameStrength.SECRET)
    if last.endswith("token"):
        unambiguous = qualifier in _TOKEN_QUALIFIERS or last != "token"
        return SecretName("token", NameStrength.SECRET if unambiguous else NameStrength.TOKEN)
    if last.endswith(_KEY_COMPOUNDS) or (last == "key" and qualifier in _KEY_QUALIFIERS):
        return SecretName(_kind_of_key(last, qualifier, pieces), NameStrength.SECRET)
    if last == "key":
        return SecretName("api-key", NameStrength.KEY)
    return SecretName("secret", NameStrength.TOKEN) if last == "credential" else None


def _kind_of_key(last: str, qualifier: str, pieces: list[str]) -> str:
    if qualifier == "private" or last.endswith("privatekey"):
        return "private-key"
    return "aws-secret-key" if "aws" in pieces and "secret" in pieces else "api-key"


_FILLER = lazy_pattern(r"[xX*.•_-]*|(.)\1*", re.DOTALL)
_MASKED = lazy_pattern(r"[xX]{6}|\*{3}|\.{3}")
_MASK_RUN = lazy_pattern(r"x{2,}|0{3,}")

_REFERENCE = lazy_pattern(
    r"""\$[({\[]                        # $(cat file), ${TOKEN}
      | \$[A-Z_]+[0-9]?$ | \$[a-z_]+$   # $TOKEN, $token
      | \{\{ | \{%                      # {{ token }}
      | \{[\w.:!"'\[\]-]+\}$            # {token}, {token!r}
      | %[A-Z_]+%$ | %\w*\( | %(?:\d\$)?s$       # %TOKEN%, %(token)s, %env(TOKEN)%
      | ![A-Za-z]+$                     # !vault
      | <[^<>]*>?                       # <token>
      | \[[A-Za-z_ .-]*\]?$ | \#\{ | @\{ | [(]
    """,
    re.VERBOSE,
)
_NAME = r"[A-Za-z_$][\w$]*(?:(?:\?\.|::|->|\.)[A-Za-z_$][\w$]*)"
_CODE = lazy_pattern(
    rf"""(?:await|new|lambda|async|not)$
      | !?{_NAME}*[(]                   # getToken(, db.secrets.get(
      | {_NAME}*\[["'\w]*\]?            # os.environ["TOKEN"], argv[1]
    """,
    re.VERBOSE,
)
_ATTRIBUTE = lazy_pattern(rf"{_NAME}+[,;!]*")  # process.env.TOKEN, config?.token
_ENVIRONMENT = lazy_pattern(  # places of settings, whatever the name of the setting
    r"(?:process\.env|import\.meta\.env|os\.environ|Deno\.env|Bun\.env|ENV|env|secrets|vars|config|settings|cfg|args|opts"
    r"|options|params|props|self|this|data|local|var|module|each)(?:\.|\?\.|\[)[\w.?\"'\]\[]+[,;!)]*"
)
_DIGIT_LETTER = lazy_pattern(r"[0-9][A-Za-z]")
_CONSTANT = lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_INSIDE = lazy_pattern(r"(?<![0-9A-Za-z])" + _UUID.pattern + r"(?![0-9A-Za-z])")
_HEX = lazy_pattern(r"(?:0x)?[0-9a-fA-F]+")
_HEX_INSIDE = lazy_pattern(r"(?<![0-9A-Za-z])[0-9a-fA-F]+(?![0-9A-Za-z])")
_DIGEST = lazy_pattern(
    r"(?i)(?:sha-?(?:1|224|256|384|512)|md5|blake[23][bs]?)[:=_-]|ssh-|ecdsa-|age1|\$2[aby]\$|\$argon2"
)
_SCHEME = lazy_pattern(r"[a-z][a-z0-9+.-]{1,20}://")
_PATH = lazy_pattern(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]|(?:[\w.-]+/)+[\w.-]*$|[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}$")
_WORD = lazy_pattern(r"[A-Za-z]+(?:[-_.'/][A-Za-z]+)*[.,;:!?]*")
_ALGORITHM_OR_VERSION = lazy_pattern(
    r"""(?: 1password | argon2(?:id?|d)? | bcrypt | scrypt | pbkdf2 | hmac | sha-?[0-9]+ | aes-?[0-9]+ | rsa-?[0-9]*
          | md5 | ed25519 | base-?(?:32|58|64) | oauth-?2?(?:\.[01])? | utf-?8(?:mb[34])? | [hrep]s(?:256|384|512)
          | oidc | 2fa | mfa | totp | sha[0-9]{1,3}crypt | crc32 | x509 | pkcs[0-9]{1,2} | tls-?1\.[0-3] | https?[12]
          | (?:iso|rfc)-?[0-9]{3,5} | ipv[46] | h26[45] | win(?:32|64) | es[0-9]{1,4} | i18n | l10n | a11y | k8s | web3
          | (?:u?int|float|n?varchar2?|(?:var)?binary|char|bytes|string|str|text|decimal)\(?[0-9]{1,4}\)?
          | (?:python|node|java|php|ruby|ios|android|react|vue|angular|postgres|mysql|redis|ubuntu|debian)[0-9]{1,2}
          | l[0-9]{1,5}(?:-l?[0-9]{1,5})? | [<>~^]=?[0-9]+ | [\w/-]+\.[a-z]{1,4}:[0-9]{1,5}(?:-[0-9]{1,5})? )
        (?:[-_/][a-z0-9]{1,8}){0,3}
      | v[0-9]+(?:\.[0-9x]+)* | [0-9]+(?:\.[0-9x]+)+[a-z]{0,3} | [0-9]{1,3}[a-z%+]{0,3}    # v2, 1.2.x, 30d, 12+
    """,
    re.VERBOSE,
)
_NUMBERED_WORD = lazy_pattern(r"(?P<word>[a-z]+(?:_[a-z]+){0,3})[-_#]?[0-9]{1,2}")
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SEGMENT = lazy_pattern(r"[A-Za-z0-9]+")
_CONSONANTS = lazy_pattern(r"(?i)[bcdfghjklmnpqrstvwxz]{6}")
_MAX_PLACEHOLDER_LENGTH = 64
# Mean length of the runs of one kind (lower case, upper case, digits) in a value. In words and identifiers the kind
# changes every four characters or more, in random text every two (measured on memory files and on generated tokens).
_MAX_RANDOM_PIECE_LENGTH = 3.4
_IDENTIFIER = lazy_pattern(r"[A-Za-z]+(?:_[A-Za-z]+)*")
_NAME_WITH_NUMBER = lazy_pattern(r"[a-z]+(?:_[a-z]+)*[0-9]{0,3}")  # page_width2
_CODE_NOUNS = word_set("""
    procedure schema field input handler resolver validator type string mutation query function callback
    component control
    state ref hook service model dto form route screen page view button prop props label text message error hash param
    value name key id store config helper util utils class enum const mock stub fixture factory provider context action
    reducer selector strategy policy rule rules regex pattern placeholder attribute column prompt dialog modal variable
""")
_ULID = lazy_pattern(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
# A piece that can be spoken: a vowel, and no long run of consonants or of vowels.
_PRONOUNCEABLE = lazy_pattern(
    r"(?i)(?=[a-z]{0,24}[aeiouy])(?![a-z]{0,24}(?:[bcdfghjklmnpqrstvwxz]{5}|[aeiou]{4}|[jqx][bcdfghjklmnpqrstvwxz]))"
    r"[a-z]{3,24}"
)
_SHORT_WORDS = word_set(
    "id at by of to in on is up db ui io os ip js ts py go my no or as an it if do we us be so me ok ms"
)
_MIN_WORD_LENGTH = 3
_MIN_IDENTIFIER_WORDS = 2
_MIN_WORD_SHARE = 0.65
_MIN_RANDOM_NUMBERS = 3  # words are followed by a number or two (`q1v2`), hardly ever by a third
_MIN_RANDOM_LENGTH = 8
_MIN_RANDOM_RUN_LENGTH = 10  # a shorter random run without separators may as well be an abbreviation with a number
_WORD_AND_NUMBER = lazy_pattern(r"[A-Za-z]*[a-z][_.-]?[0-9]{3,6}")  # Winter_2026; not SEC-001, not step-2
_SYMBOLS = frozenset("!@#$%^&*+?~=")
_MIN_SECRET_LENGTH = 8
_MIN_LENGTH = {
    NameStrength.PASSPHRASE: 3,
    NameStrength.PASSWORD: 3,
    NameStrength.SHORT_PASSWORD: 6,
    NameStrength.SECRET: _MIN_SECRET_LENGTH,
    NameStrength.TOKEN: 16,
    NameStrength.KEY: 20,
}
_MIN_INLINE_LENGTH = 5
_MIN_STRONG_LENGTH = 6
_MIN_PIN_LENGTH = 4
_MIN_HEX_TOKEN_LENGTH = 20


def is_masked(value: str) -> bool:
    """Return whether most of a value was written as crosses, stars or dots, as in `ghp_xxxxxxxxxxxx`."""
    return _MASKED.search(value) is not None


def is_filler(value: str) -> bool:
    """Return whether a value is one character over and over, or only crosses, stars, dots and dashes."""
    return _FILLER.fullmatch(value) is not None


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder for a secret: `xxxx`, `<token>`, `$TOKEN`, `your-api-key-here`."""
    if is_filler(value) or is_masked(value) or _REFERENCE.match(value) or _CONSTANT.fullmatch(value):
        return True
    if len(value) > _MAX_PLACEHOLDER_LENGTH:
        return False
    words = _PIECE.findall(value.lower()) if value.isupper() else [word.lower() for word in _PIECE.findall(value)]
    return bool(words) and all(
        word in PLACEHOLDER_WORDS or word in GENERIC_NAMES or _MASK_RUN.fullmatch(word) for word in words
    )


def is_code(value: str) -> bool:
    """Return whether an unquoted value is an expression that names the source of a secret: a call, an attribute."""
    if _ENVIRONMENT.fullmatch(value) is not None:
        return True
    return _CODE.match(value) is not None or (_ATTRIBUTE.fullmatch(value) is not None and _consists_of_words(value))


def is_descriptive_word(value: str) -> bool:
    """Return whether a value is a type, a method, a version, or a word of a description after "password:"."""
    word = value.strip(".,;:!?&*").lower()
    if word in TYPE_NAMES or word in PROSE_WORDS or _ALGORITHM_OR_VERSION.fullmatch(word) is not None:
        return True
    numbered = _NUMBERED_WORD.fullmatch(word)
    return numbered is not None and not _NUMBERED.isdisjoint((numbered["word"], *numbered["word"].split("_")[:1]))


def is_sentence(value: str) -> bool:
    """Return whether words between quotes are a message about a secret rather than a passphrase."""
    return any(word.strip(".,;:!?").lower() in SENTENCE_WORDS for word in value.split())


def is_hex(value: str) -> bool:
    """Return whether a value is a hexadecimal number, as git's object names and checksums are."""
    return _HEX.fullmatch(value) is not None


def is_url_or_path(value: str) -> bool:
    """Return whether a value is a URL, or a path or file name whose parts are words."""
    if _SCHEME.match(value):
        return True
    return _PATH.match(value) is not None and _consists_of_words(value)


def _consists_of_words(value: str) -> bool:
    """Return whether digits end words, as in `db2.host`, and no part looks random."""
    return _DIGIT_LETTER.search(value) is None and not looks_random(value, min_length=_MIN_RANDOM_LENGTH)


def is_identifier(value: str) -> bool:
    """Return whether letters alone are an identifier that ends in a noun of programs: `writeProcedure`, `pw_field`."""
    if not _IDENTIFIER.fullmatch(value):
        return False
    pieces = _PIECE.findall(value)
    return len(pieces) > 1 and (pieces[-1].lower() in _CODE_NOUNS or pieces[0].lower() in _ACTIONS)


def is_ulid(value: str) -> bool:
    """Return whether a value is a ULID, which names a row or a request and opens nothing."""
    return _ULID.fullmatch(value) is not None


def is_uuid(value: str) -> bool:
    """Return whether a value is a UUID."""
    return _UUID.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Return whether a value consists of letters alone, perhaps joined like an identifier or a slug."""
    return _WORD.fullmatch(value) is not None


def has_mixed_run(value: str, *, min_length: int) -> bool:
    """Return whether a run of letters and digits in a value contains both and has at least that length."""
    return any(
        len(run) >= min_length and any(map(str.isdigit, run)) and any(map(str.isalpha, run))
        for run in _SEGMENT.findall(value)
    )


def looks_random(value: str, *, min_length: int) -> bool:
    """Return whether a run of letters and digits in a value of at least that length looks random."""
    if len(value) < min_length:
        return False
    min_run_length = min(_MIN_RANDOM_RUN_LENGTH, min_length)
    return any(_is_random_run(run) for run in _SEGMENT.findall(value) if len(run) >= min_run_length)


def _is_random_run(run: str) -> bool:
    if run.isdigit():
        return False
    pieces = _PIECE.findall(run)
    if _is_camel_case(run, pieces):
        return False
    if len(run) < _MAX_RANDOM_PIECE_LENGTH * len(pieces) or _CONSONANTS.search(run):
        return True
    return sum(map(str.isdigit, pieces)) >= _MIN_RANDOM_NUMBERS


def _is_camel_case(run: str, pieces: list[str]) -> bool:
    """Return whether most letters of a run in mixed case belong to words (`lastSyncedAtMillisV2`).

    One in a hundred random tokens of 24 letters and digits is like that.
    """
    if run.islower() or run.isupper():
        return False
    words = [piece for piece in pieces if len(piece) >= _MIN_WORD_LENGTH and _PRONOUNCEABLE.fullmatch(piece)]
    letters = sum(map(len, words)) + sum(len(piece) for piece in pieces if piece.lower() in _SHORT_WORDS)
    return len(words) >= _MIN_IDENTIFIER_WORDS and letters >= _MIN_WORD_SHARE * len(run)


class ValueContext(Enum):
    """The position of a value in its line."""

    QUOTED = auto()
    """In quotes: a literal."""
    FIELD = auto()
    """The whole value of a field: `PASSWORD=...`, `--password ...`, `;Pwd=...;`."""
    INLINE = auto()
    """In the middle of a line or in backticks: it may as well be a word of a sentence or an identifier."""


def is_secret(value: str, strength: NameStrength, context: ValueContext) -> bool:
    """Return whether the value beside a name must be redacted."""
    if len(value) < _MIN_LENGTH[strength]:
        return False
    if strength in {NameStrength.PASSPHRASE, NameStrength.PASSWORD}:
        return not _is_false_positive(value, context) and _is_password(value, strength, context)
    if strength is NameStrength.SHORT_PASSWORD:
        is_name = _NAME_WITH_NUMBER.fullmatch(value) is not None
        return is_strong_password(value) and not is_name and not _is_false_positive(value, context)
    # Most values beside "key" and "token" are words. Checking first whether one looks random saves the other checks.
    return _is_token(value, strength, context) and not _is_false_positive(value, context)


def is_strong_password(value: str) -> bool:
    """Return whether a value can hardly be a word of a text: it mixes letters with digits or signs."""
    if len(value) < _MIN_STRONG_LENGTH or any(map(str.isspace, value)) or not any(map(str.isalpha, value)):
        return False
    if has_mixed_run(value, min_length=_MIN_INLINE_LENGTH) or _WORD_AND_NUMBER.fullmatch(value):
        return True
    return not _SYMBOLS.isdisjoint(value) and any(map(str.isdigit, value))


def is_strange(value: str) -> bool:
    """Return whether a value is hardly a name: it mixes letters with digits and looks random, or has signs as well."""
    if not is_strong_password(value) or is_placeholder(value) or is_url_or_path(value):
        return False
    return not _SYMBOLS.isdisjoint(value) or looks_random(value, min_length=_MIN_SECRET_LENGTH)


def _is_false_positive(value: str, context: ValueContext) -> bool:
    if is_placeholder(value) or is_descriptive_word(value) or _DIGEST.match(value) or is_url_or_path(value):
        return True
    return context is not ValueContext.QUOTED and (is_code(value) or is_identifier(value))


def _is_password(value: str, strength: NameStrength, context: ValueContext) -> bool:
    if any(map(str.isspace, value)):
        return context is ValueContext.QUOTED and (strength is NameStrength.PASSPHRASE or not is_sentence(value))
    if value.isdigit():
        return len(value) >= _MIN_PIN_LENGTH and context is not ValueContext.INLINE
    if context is not ValueContext.INLINE:
        return True
    if len(value) < _MIN_INLINE_LENGTH or is_word(value):
        return False
    if has_mixed_run(value, min_length=_MIN_INLINE_LENGTH) or not _SYMBOLS.isdisjoint(value):
        return True
    return _WORD_AND_NUMBER.fullmatch(value) is not None


def _is_token(value: str, strength: NameStrength, context: ValueContext) -> bool:
    if any(map(str.isspace, value)):
        return False
    if strength is not NameStrength.SECRET and is_ulid(value):
        return False
    if _UUID.fullmatch(value):
        return strength is NameStrength.SECRET and context is not ValueContext.INLINE
    if strength is NameStrength.SECRET:
        return has_mixed_run(value, min_length=_MIN_SECRET_LENGTH) or looks_random(value, min_length=_MIN_SECRET_LENGTH)
    if is_hex(value):
        is_field = strength is NameStrength.TOKEN and context is not ValueContext.INLINE
        return is_field and len(value) >= _MIN_HEX_TOKEN_LENGTH
    if not looks_random(value, min_length=_MIN_LENGTH[strength]):
        return False
    rest = _UUID_INSIDE.sub("", value)
    if strength is NameStrength.KEY:
        rest = _HEX_INSIDE.sub("", rest)  # the `tenant:` of `tenant:<uuid>`
    return looks_random(rest, min_length=_MIN_LENGTH[strength])
