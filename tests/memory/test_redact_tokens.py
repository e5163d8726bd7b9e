"""Tokens recognized by their form. This file contains no token: each is built by a seeded generator."""

from __future__ import annotations

import random
import string

import pytest

from echod.memory.redact import find_secrets, redact
from echod.memory.redact.patterns import TOKEN_PATTERNS, TokenPattern

UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
BASE = string.ascii_letters + string.digits


def drawn(alphabet: str, length: int) -> str:
    return "".join(random.Random(f"{alphabet}{length}").choices(alphabet, k=length))


def jwt_rest() -> str:
    return f"{drawn(BASE, 20)}.eyJ{drawn(BASE, 40)}.{drawn(BASE + '_-', 43)}"


# What follows a beginning where forty letters and digits do not do.
RESTS = {
    "AKIA": drawn(UPPER, 16),
    "ASIA": drawn(UPPER, 16),
    "ABIA": drawn(UPPER, 16),
    "ACCA": drawn(UPPER, 16),
    "hooks.slack.com/": f"services/T{drawn(UPPER, 9)}/B{drawn(UPPER, 9)}/{drawn(BASE, 24)}",
    "SG.": f"{drawn(BASE, 22)}.{drawn(BASE, 43)}",
    "hf_": drawn(string.ascii_letters, 34),
    "api_org_": drawn(string.ascii_letters, 34),
    "eyJ": jwt_rest(),
    "dapi": drawn(HEX, 32),
    "sk-or-v1-": drawn(HEX, 64),
    "ntn_": drawn(string.digits, 11) + drawn(BASE, 35),
    "tskey-": f"auth-{drawn(BASE, 12)}-{drawn(BASE, 24)}",
    "dop_v1_": drawn(HEX, 64),
    "doo_v1_": drawn(HEX, 64),
    "dor_v1_": drawn(HEX, 64),
    "ops_eyJ": drawn(BASE, 200),
    "pypi-AgE": drawn(BASE, 100),
    "AGE-SECRET-KEY-1": drawn(UPPER, 58),
}
BEGINNINGS = [
    pytest.param(shape, beginning, id=f"{shape.kind}-{beginning}")
    for shape in TOKEN_PATTERNS
    for beginning in shape.prefixes
]


def rest_of(shape: TokenPattern, beginning: str) -> str:
    if "_eyJ" in shape.pattern.pattern:
        return f"{drawn(string.digits, 6)}_eyJ{jwt_rest()}"
    return RESTS.get(beginning, drawn(BASE, 40))


@pytest.mark.parametrize(("shape", "beginning"), BEGINNINGS)
def test_a_token_is_found_by_its_form_and_exactly_it_is_replaced(shape: TokenPattern, beginning: str) -> None:
    token = beginning + rest_of(shape, beginning)

    result = redact(f"- the worker left {token}, see the log\n")

    assert result.text == f"- the worker left [REDACTED:{shape.kind}], see the log\n"


@pytest.mark.parametrize(("shape", "beginning"), BEGINNINGS)
def test_a_token_is_found_in_any_quotes(shape: TokenPattern, beginning: str) -> None:
    token = beginning + rest_of(shape, beginning)

    for around in ('"{}"', "'{}'", "`{}`", "({})", "<{}>", "|{}|", "x={};", "{}.", "\\n{}\\n", "**{}**"):
        assert redact(around.format(token)).text == around.format(f"[REDACTED:{shape.kind}]")


@pytest.mark.parametrize(("shape", "beginning"), BEGINNINGS)
def test_a_beginning_alone_is_no_token(shape: TokenPattern, beginning: str) -> None:
    text = f"tokens begin with {beginning} and {beginning}... or {beginning}short and {beginning}* everywhere"

    assert find_secrets(text) == ()


@pytest.mark.parametrize(("shape", "beginning"), BEGINNINGS)
def test_a_beginning_inside_a_word_is_no_token(shape: TokenPattern, beginning: str) -> None:
    found = find_secrets(f"word{beginning}{rest_of(shape, beginning)}")

    assert shape.kind not in {secret.kind for secret in found}


OPEN = [param for param in BEGINNINGS if "[xX]{6}" in param.values[0].pattern.pattern]  # type: ignore[union-attr]


@pytest.mark.parametrize(("shape", "beginning"), OPEN)
def test_a_token_that_is_crossed_out_is_a_placeholder(shape: TokenPattern, beginning: str) -> None:
    assert find_secrets(f"use {beginning}{'x' * 40} here") == ()


def test_a_token_of_an_exact_length_is_taken_whatever_it_is_made_of() -> None:
    assert redact("h" + "f_" + "x" * 34).text == "[REDACTED:huggingface-token]"


def test_the_more_special_form_names_the_token() -> None:
    assert redact("sk" + "-ant-" + "api03-" + drawn(BASE, 90)).text == "[REDACTED:anthropic-key]"
    assert redact("sk" + "-proj-" + drawn(BASE, 90)).text == "[REDACTED:openai-key]"


def test_a_public_key_of_a_payment_service_is_no_secret() -> None:
    assert find_secrets("p" + "k_live_" + drawn(BASE, 30)) == ()


@pytest.mark.parametrize(
    "trick",
    ["{}\u200b{}", "{}\u200d{}", "{}\u00ad{}", "{}\ufeff{}", "{}\u2060{}", "{}\u202e{}"],
)
def test_an_invisible_character_does_not_hide_a_token(trick: str) -> None:
    token = "g" + "hp_" + drawn(BASE, 36)

    assert redact(f"a {trick.format(token[:9], token[9:])} b").text == "a [REDACTED:github-token] b"


def test_fullwidth_characters_do_not_hide_a_token() -> None:
    token = "g" + "hp_" + drawn(BASE, 36)
    wide = "".join(chr(ord(char) + 0xFEE0) for char in token)

    assert redact(f"a {wide} b").text == "a [REDACTED:github-token] b"


PEM_LABELS = ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "]


def armour(label: str, lines: int = 5, *, prefix: str = "", end: str = "-----") -> str:
    body = [drawn(BASE + "+/", 64) for _ in range(lines)] + [drawn(BASE, 20) + "=="]
    marks = f"-----BEGIN {label}PRIVATE" + " KEY-----", f"-----END {label}PRIVATE" + f" KEY{end}"
    return "\n".join(prefix + line for line in (marks[0], *body, marks[1]))[len(prefix) :]


@pytest.mark.parametrize("label", PEM_LABELS)
def test_a_private_key_is_removed_as_a_whole_and_its_fence_stays(label: str) -> None:
    text = f"before\n```pem\n{armour(label)}\n```\nafter\n"

    assert redact(text).text == "before\n```pem\n[REDACTED:private-key]\n```\nafter\n"


def test_a_pgp_key_with_headers_is_a_private_key() -> None:
    key = armour("PGP ").replace("KEY-----", "KEY BLOCK-----").replace("BLOCK-----\n", "BLOCK-----\nVersion: 2\n\n", 1)

    assert redact(f"> {key}\n").text == "> [REDACTED:private-key]\n"


@pytest.mark.parametrize("prefix", ["  ", "> ", "\t"])
def test_a_private_key_in_a_list_or_a_quotation_is_found(prefix: str) -> None:
    assert redact(f"- key:\n{prefix}{armour('RSA ', prefix=prefix)}\n- next\n").text == (
        f"- key:\n{prefix}[REDACTED:private-key]\n- next\n"
    )


@pytest.mark.parametrize("newline", ["\\n", "\\\\n"])
def test_a_private_key_in_a_json_string_is_found(newline: str) -> None:
    text = '{"private' + '_key": "' + armour("").replace("\n", newline) + newline + '"}'

    assert redact(text).text == '{"private' + '_key": "[REDACTED:private-key]' + newline + '"}'


def test_a_private_key_that_was_cut_off_is_still_one() -> None:
    cut = armour("RSA ")[:220]

    assert redact(f"```\n{cut}\n```\n").text == "```\n[REDACTED:private-key]\n```\n"


def test_a_cut_private_key_does_not_swallow_what_follows() -> None:
    cut = armour("RSA ")[:220]

    assert redact(f"{cut}\n## Inscribed — next (2026-01-01)\n").text == (
        "[REDACTED:private-key]\n## Inscribed — next (2026-01-01)\n"
    )


@pytest.mark.parametrize("body", ["...", "xxx", "***", "YWJjZGVmZ2hp", "<your key>", "a line of prose about keys"])
def test_armor_without_a_key_is_not_a_secret(body: str) -> None:
    assert find_secrets("-----BEGIN PRIVATE" + f" KEY-----\n{body}\n-----END PRIVATE" + " KEY-----\n") == ()


def test_a_public_key_and_a_certificate_are_no_secrets() -> None:
    for label in ("PUBLIC" + " KEY", "CERTIFICATE"):
        body = "\n".join([drawn(BASE, 64)] * 3)
        assert find_secrets(f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n") == ()
