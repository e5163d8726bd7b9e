"""Texts made to take long. Every rule looks at a bounded number of characters, so time grows with the text and no faster.

The figures are in the benchmark; here a rule that became quadratic would run into the test's time limit.
"""

from __future__ import annotations

import pytest

from echod.memory.redact import find_secrets, redact, redact_entry
from echod.memory.redact.patterns import TOKEN_PATTERNS

pytestmark = pytest.mark.slow

SIZE = 200_000
BEGINNINGS = [beginning for shape in TOKEN_PATTERNS for beginning in shape.prefixes]
UNITS = [
    "password", "password ", "password:", "password=", 'password="', "key", "key=", "key:'", "token `", 'secret\\"', "_pass",
    "-pass", "--pass ", "token (", "password: str[", "password]]]]", "password****", "authorization: ", "bearer ",
    "bearer", "Authorization: Bearer a1", " -u a:", " -u aaaaaaaaaaa", " --user", "sshpass -p ", "login x password y ",
    "sig=", "://", "://a:", "://a@", "://a:b@", "-----BEGIN PRIVATE" + " KEY-----", "-----BEGIN PRIVATE" + " KEY-----\nA: b\n",
    "-----BEGIN PRIVATE" + " KEY-----\n" + "A" * 40 + "\n", "-----", "A" * 64 + "\n", "- **evidence**: ", "evidence: a@b.co\n ",
    "a@", "a@b.", "aaaa.", "x", "0", "a1", " ", "\n", "\t", "\u200b", "\uff41", "\\", "\\n", '"', "'", "`", "[REDACTED:",
    "[REDACTED:token]", "password: aB3x9Kq2 ", "password=a;", "access token of the value in the ", "&a=", "<a", "\uffff",
    "name: a value: ", "key=", 'name="a" value=', 'auth("a",', "auth(a,", "login(", "connect(a,a,", "password for a ", "password was set to ",
    "recovery code: a1b2-", "a1b2-", "mnemonic abc ", "convertto-securestring '", "username a password ",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_repeated_on_one_line_takes_linear_time(unit: str) -> None:
    find_secrets("password: " + unit * (SIZE // len(unit)))


@pytest.mark.parametrize("unit", ["a@", "a@b.", "a.", "- **evidence**: ", "evidence: a@b.co\n ", "\n ", "a@b.co "])
def test_evidence_takes_linear_time(unit: str) -> None:
    redact_entry("- **evidence**: " + unit * (SIZE // len(unit)))


def test_the_beginnings_of_all_forms_repeated_take_linear_time() -> None:
    for beginning in BEGINNINGS:
        find_secrets(beginning * (SIZE // 4 // len(beginning)))


def test_a_token_of_a_megabyte_is_redacted_as_one() -> None:
    line = "x " + "g" + "hp_" + "aB3dE5gH7" * 111_111 + " y"

    assert redact(line).text == "x [REDACTED:github-token] y"


def test_a_line_of_a_megabyte_of_prose_is_left_alone() -> None:
    line = "the worker checks the key of each token and the password of each user " * 14_000

    assert find_secrets(line) == ()


def test_a_text_full_of_secrets_is_redacted_to_the_last() -> None:
    lines = "".join(f"- password: hunter{number}x and more words\n" for number in range(5_000))

    result = redact(lines)

    assert len(result.spans) == 5_000
    assert find_secrets(result.text) == ()
