"""Find the commands and errors that a text names, in the same way in an entry and in what an agent does.

The search index stores the mentions of entries, and the hooks look up those of a call. Without regular expressions,
since loading them takes longer than a hook may run.
"""

from __future__ import annotations

MAX_ERROR_CHARACTERS = 6000
MAX_MENTIONS = 40
MAX_MENTION_LENGTH = 200
_MAX_WORDS = 1200
_MIN_MESSAGE_WORDS, _MIN_MESSAGE_LENGTH = 3, 15
_MIN_CODE_LENGTH, _MAX_CODE_LENGTH = 4, 60
_MIN_WORD = 4
_MIN_DIGITS, _MAX_DIGITS, _MAX_LETTERS = 3, 5, 5
_ENDS = ".,:;!?()[]{}<>\"'`*"
_SEPARATORS = ("&&", "||", ";", "|", "\n")
_ERROR_ENDINGS = ("Error", "Exception", "Warning", "Fault")
_EVERYDAY = {
    *("ls", "cd", "cat", "echo", "grep", "rg", "find", "sed", "awk", "head", "tail", "wc", "pwd", "mkdir", "rm", "cp"),
    *("mv", "touch", "which", "true", "false", "test", "export", "set", "source", "sleep", "kill", "ps", "man", "less"),
    *("git status", "git diff", "git log", "git add", "git show", "git branch"),
}
"""Commands that every session runs. An entry that names one is not about it."""
_WRAPPERS = frozenset(("sudo", "time", "exec", "nice", "nohup", "command", "env"))

_EVERY_MESSAGE = {
    *("argument", "arguments", "attribute", "been", "cannot", "class", "could", "does", "error", "exception"),
    *("expected", "failed", "file", "found", "from", "function", "given", "have", "import", "index", "instance"),
    *("integer", "invalid", "iterable", "keyword", "line", "list", "method", "missing", "module", "more", "must"),
    *("name", "named", "null", "none", "number", "object", "only", "operand", "operation", "output", "perhaps"),
    *("positional", "properties", "property", "reading", "required", "requires", "return", "should", "string"),
    *("subscriptable", "such", "takes", "than", "that", "this", "type", "types", "undefined", "unexpected"),
    *("unknown", "unsupported", "valid", "value", "values", "were", "when", "while", "with", "without", "your"),
}
"""Words of many error messages."""

COMMAND, CODE, MESSAGE = "command", "code", "message"
"""The kinds of mentions: a command, the name or number of an error, and words of an error message."""


def text_mentions(text: str) -> list[tuple[str, str, str]]:
    """Return the mentions in the text of an entry, as (kind, key, text). Each once, at most `MAX_MENTIONS`."""
    found: dict[tuple[str, str, str], None] = {}
    for span in _code_spans(text):
        words = span.split()
        if is_command(words):
            found[COMMAND, command_key(words), " ".join(words)] = None
        message = normal_text(span)
        if len(message.split(" ")) >= _MIN_MESSAGE_WORDS and len(message) >= _MIN_MESSAGE_LENGTH:
            found[MESSAGE, " ".join(message.split(" ")[:2]), message] = None
    for word in text.split():
        if word.islower():
            continue  # quick, since nearly all words are
        code = word.strip(_ENDS)
        if is_code(code):
            found[CODE, code.lower(), code] = None
    return [mention for mention in found if len(mention[2]) <= MAX_MENTION_LENGTH][:MAX_MENTIONS]


def _code_spans(text: str) -> list[str]:
    """Return what is between back quotes, and the lines of code blocks."""
    spans = []
    inside = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            spans.append(line.strip().removeprefix("$ "))
        else:
            spans += line.split("`")[1::2]
    return spans


def is_command(words: list[str]) -> bool:
    """Return whether words are a command that is worth recognising: a program and at least one argument."""
    if len(words) < 2:  # noqa: PLR2004  a program and an argument
        return False
    program = words[0]
    name = program.rpartition("/")[2]
    plain = name.replace("-", "").replace("_", "").replace(".", "").replace("+", "")
    if not plain.isalnum() or not plain.isascii() or not name[0].islower() or words[1][0] in "=({":
        return False
    return program not in _EVERYDAY and command_key(words) not in _EVERYDAY


def command_key(words: list[str]) -> str:
    """Return the program and its first argument, in lower case."""
    return f"{words[0]} {words[1]}".lower()


def call_commands(command: str) -> list[list[str]]:
    """Return the words of each simple command in a command line."""
    for separator in _SEPARATORS:
        command = command.replace(separator, "\n")
    found = []
    for line in command.split("\n"):
        words = line.split()
        while words and (words[0] in _WRAPPERS or _is_assignment(words[0])):
            del words[0]
        if is_command(words):
            found.append(words)
    return found[:20]


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "").isalnum()


def is_code(word: str) -> bool:
    """Return whether a word is the name or number of an error: `EADDRINUSE`, `TS2345`, `ModuleNotFoundError`."""
    if not _MIN_CODE_LENGTH <= len(word) <= _MAX_CODE_LENGTH or not word.isascii() or not word[0].isupper():
        return False
    if word.endswith(_ERROR_ENDINGS) and word.isalnum() and not word.isupper():
        return word not in _ERROR_ENDINGS
    return is_distinct_code(word)


def is_distinct_code(word: str) -> bool:
    """Return whether the name of an error alone is enough, as `EADDRINUSE` is and `TypeError` is not."""
    if not word.isupper() or not word.replace("_", "").isalnum():
        return False
    if word.startswith("ERR_"):
        return True
    letters = len(word.rstrip("0123456789"))
    digits = len(word) - letters
    if digits:
        return _MIN_DIGITS <= digits <= _MAX_DIGITS and 1 <= letters <= _MAX_LETTERS
    return word[0] == "E" and word.isalpha() and len(word) > _MIN_CODE_LENGTH and word not in _WORDS_WITH_E


_WORDS_WITH_E = frozenset(("ERROR", "ERRORS", "EVERY", "EXCEPT", "ENABLE", "EMPTY", "EITHER", "EXACTLY", "ETCHED"))


def normal_text(text: str) -> str:
    """Return a text in lower case with single spaces, without punctuation around its words."""
    return " ".join([word for word in (part.strip(_ENDS) for part in text.lower().split()) if word])


def error_keys(error: str) -> dict[str, str]:
    """Return the keys by which mentions of an error are looked up, each with the word or words as they are written."""
    keys: dict[str, str] = {}
    words = [word for word in (part.strip(_ENDS) for part in _bounded(error).split()) if word][:_MAX_WORDS]
    for number, word in enumerate(words):
        if is_code(word):
            keys[word.lower()] = word
        if number:
            keys[f"{words[number - 1]} {word}".lower()] = word
    return keys


def _bounded(error: str) -> str:
    if len(error) <= MAX_ERROR_CHARACTERS:
        return error
    half = MAX_ERROR_CHARACTERS // 2
    return f"{error[:half]}\n{error[-half:]}"


def names_error(code: str, text: str, error: str) -> bool:
    """Return whether a text with the name of an error is about this error.

    A common name (`TypeError`) is not enough: the text also has a word of the message that not every such message has.
    """
    if is_distinct_code(code):
        return True
    lines = [line for line in _bounded(error).split("\n") if code in line]
    words = {word for line in lines for word in normal_text(line).split(" ") if len(word) >= _MIN_WORD}
    return bool((words - _EVERY_MESSAGE - {code.lower()}) & set(normal_text(text).split(" ")))
