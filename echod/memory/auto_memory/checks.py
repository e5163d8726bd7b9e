"""Find what is wrong in a directory of auto memory. Each finding has its file, its line and its fix.

A *problem* makes the host lose or misread something, or exposes a secret. A *note* makes the memory worse to use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import ceil
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.auto_memory.notes import (
    INDEX,
    MAX_LOADED_CHARACTERS,
    MAX_LOADED_LINES,
    MEMORY_TYPES,
    READ_FIELDS,
    LoadedIndex,
    MemoryDirectory,
    NoteFile,
    Pointer,
    dead_pointers,
    existing_names,
    find_pointers,
    load_index,
    named_files,
    similar_file,
    unnamed_notes,
    utf16_length,
)
from echod.memory.redact import find_secrets, redact
from echod.memory.similarity import fold, tokenize
from echod.memory.text import pluralize

_NEAR = 0.8
"""The share of a limit from which on the index is near it, so that there is time before the agent must cut."""

_MAX_LINE: Final = 200
"""Characters of a line of the index that the host recommends at most."""

_MAX_NOTE_BYTES: Final = 25_000
_STALE_SECONDS: Final = 180 * 86_400.0
_SAME_DESCRIPTION: Final = 0.8
_SAME_BODY: Final = 0.9
_MIN_WORDS: Final = 3
_MAX_QUOTED: Final = 80
_MIN_BODY_WORDS: Final = 6
_ROUNDING: Final = 1e-9
_SEPARATORS: Final = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_MAX_PROSE_SHARE: Final = 0.4
_MIN_PROSE_LINES: Final = 5
_FILE_NAME = lazy_pattern(r"[a-z0-9][a-z0-9._/-]*")
_BACKUP_NAME = lazy_pattern(r".*(?:\.(?:bak|backup|orig|old|tmp)(?:\.\d+)?|~)")
_CUT_VALUE = lazy_pattern(r"[^\"'|>\[{&*!#][^\n]*?[ \t]#")
_STRUCTURE = lazy_pattern(r"(?<!\s)\s*+(?:#{1,6}\s.*|-{3,}\s*|<!--.*)?")
_VERSION = lazy_pattern(r"[-_ ]?(?:(?:19|20)\d\d(?:[-_]?\d{1,2}){0,2}|v\d+(?:\.\d+)*|copy|\(\d+\))$")
_EMPHASIS = lazy_pattern("[\U0001f525\U0001f6a8\u26a0\U0001f6d1\u274c\u2705\U0001f4a5\u2757]")
_MAX_EMPHASIS: Final = 5
_NO_TARGET = frozenset({"", "none", "null", "n/a", "-"})
_COMMON_TEXT = (
    "a about all an and any are as at be by can code details do for from general how if in info information into is it "
    "its me memory misc my no not note notes of on or other our project some stuff that the their thing things this to "
    "use used user users using various was we what when where which who why will with you your"
)
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())


PROBLEMS: Final = frozenset(
    {
        "auto-unreadable", "auto-index-missing", "auto-index-over", "auto-index-cut", "auto-order", "auto-pointer-dead",
        "auto-pointer-missing", "auto-front-matter", "auto-front-matter-cut", "auto-name-twice",
        "auto-description-same", "auto-duplicate", "auto-secret", "auto-agent-scope", "auto-agent-unwritable",
        "auto-directory-ignored", "auto-lost",
    }
)  # fmt: skip
"""The findings that are problems. All others are notes."""

REPAIRABLE: Final = frozenset({"auto-index-missing", "auto-order", "auto-pointer-dead", "auto-pointer-missing"})
"""The findings that `repair` can fix, since it changes pointers and their order only."""


class MemoryFinding(NamedTuple):
    """Something that is wrong. `file` is relative to the directory, `line` from 1; None for the whole file."""

    code: str
    file: str
    line: int | None
    text: str
    fix: str

    @property
    def is_problem(self) -> bool:
        """Whether the host loses or misreads something, or a secret is exposed."""
        return self.code in PROBLEMS


class _Contents(NamedTuple):
    """A directory with what several checks need of it."""

    directory: MemoryDirectory
    index_text: str
    loaded: LoadedIndex
    pointers: Sequence[Pointer]
    by_name: Mapping[str, NoteFile]
    now: float

    @property
    def notes(self) -> tuple[NoteFile, ...]:
        return self.directory.notes


def check_directory(directory: MemoryDirectory, now: float) -> list[MemoryFinding]:
    """Return everything that is wrong, the index first. `now` is in Unix seconds."""
    index_text = (directory.index_file.text if directory.index_file else None) or ""
    contents = _Contents(
        directory,
        index_text,
        load_index(index_text),
        find_pointers(index_text),
        {note.name: note for note in directory.notes},
        now,
    )
    found = list(chain.from_iterable(check(contents) for check in _CHECKS))
    if all(finding.code != "auto-secret" for finding in found):
        return found
    # Findings quote titles and names. Redaction takes long, and usually there is no secret.
    return [finding._replace(text=redact(finding.text).text, fix=redact(finding.fix).text) for finding in found]


def _check_readable(contents: _Contents) -> Iterator[MemoryFinding]:
    for name, reason in contents.directory.unreadable:
        yield MemoryFinding("auto-unreadable", name, None, f"The file cannot be read: {reason}.", "Correct it by hand.")
    for note in _all_files(contents):
        if note.text is None:
            text = "The file is not UTF-8, so the host reads other characters than were written."
            yield MemoryFinding("auto-unreadable", note.name, None, text, "Save it as UTF-8.")


def _check_size(contents: _Contents) -> Iterator[MemoryFinding]:
    index, loaded = contents.directory.index_file, contents.loaded
    if index is None:
        if contents.notes:
            text = f"There is no {INDEX}, so the host loads none of {pluralize(len(contents.notes), 'file')}."
            yield MemoryFinding("auto-index-missing", INDEX, None, text, "Write an index of them.")
        return
    counts = (
        f"{loaded.lines} of {MAX_LOADED_LINES} lines and {loaded.characters:,} of {MAX_LOADED_CHARACTERS:,} characters"
    )
    if loaded.over:
        text = f"The index has {counts} that the host loads. The rest is cut off."
        fix = "Shorten lines, and move detail into the files."
        yield MemoryFinding("auto-index-over", INDEX, loaded.first_cut, text, fix)
    elif loaded.lines > MAX_LOADED_LINES * _NEAR or loaded.characters > MAX_LOADED_CHARACTERS * _NEAR:
        text = f"The index has {counts}. A write over the limit is an error for the agent."
        yield MemoryFinding("auto-index-near", INDEX, None, text, "Shorten it now, while nothing is lost.")


def _check_cut_titles(contents: _Contents) -> Iterator[MemoryFinding]:
    for pointer in contents.pointers:
        if not contents.loaded.loads(pointer.line):
            text = f'"{pointer.title}" ({pointer.target}) is not loaded.'
            fix = "Move these lines up, or shorten what is above them."
            yield MemoryFinding("auto-index-cut", INDEX, pointer.line, text, fix)


def _check_order(contents: _Contents) -> Iterator[MemoryFinding]:
    """Report what the cut loses although something older or superseded is loaded."""
    if not contents.loaded.over:
        return
    superseded = superseded_names(contents.notes)
    by_name = contents.by_name
    known = [(pointer, by_name[pointer.target]) for pointer in contents.pointers if pointer.target in by_name]
    loaded = [note for pointer, note in known if contents.loaded.loads(pointer.line)]
    cut = [(pointer, note) for pointer, note in known if not contents.loaded.loads(pointer.line)]
    loaded_older = {superseded[note.name]: note.name for note in reversed(loaded) if note.name in superseded}
    for pointer, note in cut:
        if (older := loaded_older.get(note.name)) is not None:
            text = f'"{pointer.title}" is cut off, while {older}, which it supersedes, is loaded.'
            yield MemoryFinding("auto-order", INDEX, pointer.line, text, "Put the newer one first.")
    oldest = min((note.changed_at for note in loaded), default=None)
    if oldest is None:
        return
    newer = [pointer for pointer, note in cut if note.changed_at > oldest and note.name not in superseded]
    if newer:
        text = f"{pluralize(len(newer), 'file')} below this line changed after others that are loaded."
        yield MemoryFinding(
            "auto-order", INDEX, newer[0].line, text, "Put the newest first: echod doctor --auto-memory --fix"
        )


def _check_index_lines(contents: _Contents) -> Iterator[MemoryFinding]:
    prose: list[int] = []
    pointer_lines = {pointer.line for pointer in contents.pointers}
    for number, line in enumerate(contents.index_text.split("\n"), start=1):
        if number in pointer_lines:
            if (length := utf16_length(line)) > _MAX_LINE:
                text = f"The line has {length} characters. The host recommends at most {_MAX_LINE}."
                yield MemoryFinding("auto-index-long", INDEX, number, text, "Move detail into the file that it names.")
        elif not _STRUCTURE.fullmatch(line):
            prose.append(number)
    share = len(prose) / max(1, len(prose) + len(pointer_lines))
    if len(prose) + len(pointer_lines) >= _MIN_PROSE_LINES and share > _MAX_PROSE_SHARE:
        text = f"{pluralize(len(prose), 'line')} of the index name no file, so they cost space in every session."
        yield MemoryFinding("auto-index-prose", INDEX, prose[0], text, "Move the text into a file of its own.")


def _check_pointers(contents: _Contents) -> Iterator[MemoryFinding]:
    dead = dead_pointers(contents.directory, contents.pointers)
    existing = existing_names(contents.directory)
    first: dict[str, int] = {}
    for pointer in contents.pointers:
        if pointer in dead:
            near = similar_file(pointer.target, existing)
            fix = f"Name {near}" if near else "Remove the line, or write the file again."
            text = f'"{pointer.title}" names {pointer.target}, which does not exist.'
            yield MemoryFinding("auto-pointer-dead", INDEX, pointer.line, text, fix)
        elif pointer.target in first:
            text = f"{pointer.target} is named in line {first[pointer.target]} already."
            yield MemoryFinding("auto-pointer-twice", INDEX, pointer.line, text, "Remove one of the lines.")
        first.setdefault(pointer.target, pointer.line)


def _check_named(contents: _Contents) -> Iterator[MemoryFinding]:
    if contents.directory.index_file is None:
        return
    named = named_files(contents.index_text)
    for note in unnamed_notes(contents.directory, named):
        text = "No line of the index names the file, so no session learns of it."
        yield MemoryFinding("auto-pointer-missing", note.name, None, text, f"Add a line to {INDEX}.")
    for name in contents.directory.others:
        if _BACKUP_NAME.fullmatch(name):
            text = "The file looks like a backup that was left behind."
            yield MemoryFinding("auto-backup", name, None, text, "Delete it, or move it away.")
        elif name not in named:
            text = "The file is no Markdown, and the index does not name it."
            yield MemoryFinding("auto-file-unnamed", name, None, text, "Name it in the index, or move it away.")


def _check_front_matter(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in contents.notes:
        if note.text is None:
            continue
        if not note.has_front_matter:
            begins = note.text.startswith("---")
            text = "The front matter does not end." if begins else "The file has no front matter."
            fix = "Begin the file with --- and the lines name:, description: and a type below metadata:, ended by ---."
            yield MemoryFinding("auto-front-matter", note.name, 1, text, fix)
            continue
        if note.fields is None:
            text = "The front matter is not valid YAML, so its values may not be read."
            yield MemoryFinding(
                "auto-front-matter", note.name, 1, text, "Put quotes around values that contain a colon."
            )
            continue
        for name in ("name", "description"):
            if not note.value(name):
                text = f"The front matter has no {name}."
                yield MemoryFinding("auto-front-matter", note.name, 1, text, f"Add a line {name}: ...")
        kind = note.value("type")
        if kind not in MEMORY_TYPES:
            text = f"The type is {_quoted(kind)}." if kind else "The front matter has no type."
            yield MemoryFinding("auto-type", note.name, 1, text, f"Use one of: {', '.join(MEMORY_TYPES)}.")


def _check_cut_values(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in contents.notes:
        for field in note.written_fields:
            if _CUT_VALUE.match(field.written):
                text = f"The value of {field.name} ends at its #: YAML reads the rest as a comment."
                yield MemoryFinding(
                    "auto-front-matter-cut", note.name, field.line, text, "Put quotes around the value."
                )


def _check_fields(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in contents.notes:
        lines = (note.text or "").split("\n")
        for field in note.written_fields:
            is_nested = lines[field.line - 1][:1].isspace()  # what is below `metadata` is the host's own
            if not is_nested and field.name not in READ_FIELDS:
                text = f"Claude Code does not read the field {_quoted(field.name)}."
                fix = "Write it into the text or the description, or remove it."
                yield MemoryFinding("auto-field", note.name, field.line, text, fix)


def _check_named_paths(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in contents.notes:
        for line, path in note.named_paths():
            if path in contents.directory.missing_paths:
                text = f"{_quoted(path)} does not exist on this machine."
                yield MemoryFinding("auto-path-dead", note.name, line, text, "Correct the path, or remove it.")


def _check_names(contents: _Contents) -> Iterator[MemoryFinding]:
    by_title: dict[str, NoteFile] = {}
    for note in contents.notes:
        if not _FILE_NAME.fullmatch(note.name):
            text = "The name of the file has capitals, blanks or other signs, which links often miss."
            yield MemoryFinding("auto-file-name", note.name, None, text, "Use a-z, 0-9 and hyphens.")
        if not (title := note.value("name").casefold()):
            continue
        if title in by_title:
            text = f"The name is that of {by_title[title].name} too, so a link [[{title}]] means either."
            yield MemoryFinding("auto-name-twice", note.name, _line_of(note, "name"), text, "Give one another name.")
        by_title.setdefault(title, note)


def _check_copies(contents: _Contents) -> Iterator[MemoryFinding]:
    """Report files whose names differ in a date or a version only: one of them is often an old copy."""
    first: dict[str, str] = {}
    for note in contents.notes:
        stem = note.name.removesuffix(".md").casefold()
        plain = _VERSION.sub("", stem).strip("-_ ") or stem
        if plain in first:
            text = f"The name differs from that of {first[plain]} only in a date or a version."
            yield MemoryFinding("auto-name-version", note.name, None, text, "Keep one, or name what differs.")
        first.setdefault(plain, note.name)


def _check_emphasis(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in _all_files(contents):
        if not (note.text or "").isascii() and (count := len(_EMPHASIS.findall(note.text or ""))) > _MAX_EMPHASIS:
            text = f"The file has {count} signs of alarm, so that none of them is noticed."
            yield MemoryFinding("auto-emphasis", note.name, None, text, "Keep those that matter most.")


def _check_descriptions(contents: _Contents) -> Iterator[MemoryFinding]:
    words: dict[int, frozenset[str]] = {}
    for number, note in enumerate(contents.notes):
        description = note.value("description")
        if not description:
            continue
        tokens = tokenize(fold(description))
        words[number] = frozenset(tokens) - _COMMON_WORDS
        if len(words[number]) < _MIN_WORDS:
            text = "The description has too few words of its own to be found by them."
            fix = "Say what the memory is about, with the names of files, tools or errors."
            yield MemoryFinding("auto-description-vague", note.name, _line_of(note, "description"), text, fix)
    for later, earlier in similar_pairs(words, _SAME_DESCRIPTION):
        note, other = contents.notes[later], contents.notes[earlier]
        text = f"The description cannot be distinguished from that of {other.name}."
        fix = "Describe the difference, or merge the two files."
        yield MemoryFinding("auto-description-same", note.name, _line_of(note, "description"), text, fix)


def _check_duplicates(contents: _Contents) -> Iterator[MemoryFinding]:
    words = {
        number: found
        for number, note in enumerate(contents.notes)
        if len(found := _words_of(note.body)) >= _MIN_BODY_WORDS
    }
    for later, earlier in similar_pairs(words, _SAME_BODY):
        note, other = contents.notes[later], contents.notes[earlier]
        same = note.body.split() == other.body.split()
        text = f"The text is {'the same as' if same else 'nearly the same as'} that of {other.name}."
        fix = "Keep one of the two, and remove the other with its line in the index."
        yield MemoryFinding("auto-duplicate" if same else "auto-similar", note.name, note.body_line, text, fix)


def _check_links(contents: _Contents) -> Iterator[MemoryFinding]:
    known = {*contents.by_name, *contents.directory.others, INDEX}
    titles = {note.value("name").casefold() for note in contents.notes}
    stems = {name.rpartition("/")[2].removesuffix(".md").casefold() for name in contents.by_name} | {"memory"}
    for note in contents.notes:
        for line, target in note.links():
            plain = target.casefold().removesuffix(".md")
            if target in known or plain in titles or plain.rpartition("/")[2] in stems:
                continue
            near = similar_file(f"{plain}.md", known)
            fix = f"Name {near}" if near else "Correct the link, or remove it."
            yield MemoryFinding("auto-link-dead", note.name, line, f"The link {_quoted(target)} leads nowhere.", fix)
        target = note.value("supersedes")
        if target.casefold() not in _NO_TARGET and _resolve(target, contents.notes) is None:
            text = f"It supersedes {_quoted(target)}, which does not exist."
            line = _line_of(note, "supersedes")
            yield MemoryFinding("auto-supersedes-dead", note.name, line, text, "Remove the line, or correct the name.")


def _check_secrets(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in _all_files(contents):
        text = note.text or note.data.decode("utf-8", "replace")
        for secret in find_secrets(text):
            line = text.count("\n", 0, secret.start) + 1
            found = f"The file contains a secret ({secret.kind}), which reaches a model whenever it is read."
            yield MemoryFinding("auto-secret", note.name, line, found, "Remove it, and revoke it where it is valid.")


def _check_upkeep(contents: _Contents) -> Iterator[MemoryFinding]:
    for note in contents.notes:
        if len(note.data) > _MAX_NOTE_BYTES:
            text = f"The file has {len(note.data):,} bytes. A memory is meant to be one fact."
            yield MemoryFinding("auto-file-long", note.name, None, text, "Split it, or move it to the documentation.")
        if (age := contents.now - note.changed_at) > _STALE_SECONDS:
            text = f"The file was last changed {int(age // 86_400)} days ago."
            yield MemoryFinding("auto-stale", note.name, None, text, "Check whether it is still true.")


_CHECKS: Final[tuple[Callable[[_Contents], Iterator[MemoryFinding]], ...]] = (
    _check_readable,
    _check_size,
    _check_order,
    _check_cut_titles,
    _check_pointers,
    _check_index_lines,
    _check_named,
    _check_front_matter,
    _check_cut_values,
    _check_fields,
    _check_named_paths,
    _check_names,
    _check_copies,
    _check_emphasis,
    _check_descriptions,
    _check_duplicates,
    _check_links,
    _check_secrets,
    _check_upkeep,
)


def _all_files(contents: _Contents) -> Iterator[NoteFile]:
    if contents.directory.index_file is not None:
        yield contents.directory.index_file
    yield from contents.notes


def superseded_names(notes: Sequence[NoteFile]) -> dict[str, str]:
    """Return the files that another one supersedes by its front matter, each with the name of the newer file."""
    found = {}
    for note in notes:
        target = note.value("supersedes")
        if target.casefold() not in _NO_TARGET and (old := _resolve(target, notes)) is not None:
            found[old.name] = note.name
    return found


def _resolve(target: str, notes: Sequence[NoteFile]) -> NoteFile | None:
    plain = target.strip("[]\"' ").removeprefix("./").casefold().removesuffix(".md")
    for note in notes:
        if plain in {note.name.casefold().removesuffix(".md"), note.value("name").casefold()}:
            return note
    return None


def _line_of(note: NoteFile, name: str) -> int:
    return next((field.line for field in note.written_fields if field.name == name), 1)


def _quoted(text: str) -> str:
    return f'"{text[:_MAX_QUOTED]}"'


def similar_pairs(words: Mapping[int, frozenset[str]], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield pairs of sets whose common part is at least `threshold` of both together: each with its first partner.

    Two such sets share some of the rarest words of each, so that only few pairs are compared.
    """
    counts = Counter(chain.from_iterable(words.values()))
    ranks = {word: rank for rank, word in enumerate(sorted(counts, key=lambda word: (counts[word], word)))}
    holders: defaultdict[str, list[int]] = defaultdict(list)
    needed = {number: _shared_words(len(found)) for number, found in words.items()}
    for number in sorted(words, key=lambda key: (len(words[key]), key)):
        own = sorted(words[number], key=ranks.__getitem__)
        if not own:
            continue
        rarest = own[: len(own) - ceil(threshold * len(own)) + needed[number]]
        hits = Counter(chain.from_iterable(holders[word] for word in rarest))
        candidates = sorted(other for other, count in hits.items() if count >= needed[other])
        partner = next((other for other in candidates if _is_similar(own, words[other], threshold)), None)
        if partner is not None:
            yield max(number, partner), min(number, partner)
        for word in rarest:
            holders[word].append(number)


def _shared_words(size: int) -> int:
    """Return how many of its rarest words a set must share before it is compared. More make the lists longer."""
    return 1 + size // 16


def _is_similar(own: Sequence[str], other: frozenset[str], threshold: float) -> bool:
    """Return whether two sets of words are similar. Ends at the first word that makes it impossible."""
    needed = ceil(threshold * (len(own) + len(other)) / (1 + threshold) - _ROUNDING)
    spare = len(own) - needed
    for word in own:
        if word not in other:
            spare -= 1
            if spare < 0:
                return False
    return True


def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text; a text of other scripts than Latin is taken apart more carefully."""
    return frozenset(text.lower().translate(_SEPARATORS).split() if text.isascii() else tokenize(fold(text)))
