"""Secrets that a command, a layout or a service's form gives away. The lines are those of the benchmark."""

from __future__ import annotations

import random
import string

import pytest

from echod.memory.redact import find_secrets, redact
from echod.memory.redact.commands import CLIENT_PATTERNS, compiled
from echod.memory.redact.patterns import ANCHORED_FORMS, PREFIXED_FORMS, VENDOR_FORMS, compiled_form
from tests.bench.secrets.field import INNOCENT_LINES, SECRET_LINES, fill_line
from tests.hostile.bombs import slow_texts

BASE = string.ascii_letters + string.digits


@pytest.mark.parametrize("line", SECRET_LINES)
def test_the_values_of_a_line_are_redacted_and_nothing_else(line: str) -> None:
    text, values = fill_line(line, random.Random(line))

    result = redact(text)

    assert not [value for value in values if value in result.text]
    assert redact(result.text).text == result.text


@pytest.mark.parametrize("line", INNOCENT_LINES)
def test_a_line_without_a_secret_stays(line: str) -> None:
    assert redact(f"- {line}\n").text == f"- {line}\n"


def test_there_are_enough_lines() -> None:
    assert len(set(SECRET_LINES)) >= 150
    assert len(set(INNOCENT_LINES)) >= 150


@pytest.mark.parametrize(
    "text",
    [
        "machine git.example.org\n  login bot\n  password {}\n",
        "machine git.example.org\nlogin bot\npassword {}\n",
        "machine git.example.org login bot\n  password {}\n",
        "  machine git.example.org\n    login bot\n    account x\n    password {}\n",
        "> machine git.example.org\n> login bot\n> password {}\n",
        "default\n  login bot\n  password {}\n",
        "| User | Password |\n|---|---|\n| admin | {} |\n",
        "| Host | Login | Pwd |\n|:--|:-:|--:|\n| web | bot | `{}` |\n| db | - | - |\n",
        "Service | API key\n--- | ---\nmail | {}\n",
        "docker login \\\n  -u ci \\\n  -p {} \\\n  registry.example.org\n",
        "curl https://example.org/api \\\n  -u ci:{}\n",
    ],
)
def test_what_gives_it_away_may_be_in_another_line(text: str) -> None:
    secret = "x7Kq2" + "Lm9Tz4Rw8"

    assert secret not in redact(text.format(secret)).text
    assert redact(text.format(secret)).text.count("[REDACTED:") == 1


@pytest.mark.parametrize(
    "text",
    [
        "| Field | Password |\n|---|---|\n| type | string |\n| length | 12 |\n",
        "| Name | Token |\n|---|---|\n| a | required |\n| b | see README |\n",
        "| Key | Value |\n|---|---|\n| retries | 3 |\n",
        "machine learning\nlogin page\npassword field\n",
    ],
)
def test_a_table_or_a_text_about_secrets_stays(text: str) -> None:
    assert find_secrets(text) == ()


def test_the_reference_stays_and_its_default_goes() -> None:
    text = 'const PW_PASSWORD = process.env.E2E_PASSWORD || "{}";'.format("Demo" + "123!Shop")

    assert redact(text).text == 'const PW_PASSWORD = process.env.E2E_PASSWORD || "[REDACTED:password]";'


def test_a_public_certificate_in_a_kubeconfig_stays_and_the_key_goes() -> None:
    key = "LS0tLS1C" + "RUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp" + "".join(random.Random(2).choices(BASE, k=80))
    certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1" + "".join(random.Random(3).choices(BASE, k=80))
    text = f"client-certificate-data: {certificate}\nclient-key-data: {key}\n"

    assert redact(text).text == f"client-certificate-data: {certificate}\nclient-key-data: [REDACTED:private-key]\n"


@pytest.mark.parametrize("form", [form for form in VENDOR_FORMS if not form.anchored], ids=lambda form: form.key)
def test_the_beginning_of_a_services_token_is_no_token(form: object) -> None:
    key = form.key  # type: ignore[attr-defined]

    assert find_secrets(f"tokens begin with {key} and {key}... or {key}short and {key}* everywhere") == ()
    assert find_secrets(f"use {key}{'x' * 40} here") == ()


def test_every_table_of_services_is_used() -> None:
    assert len(VENDOR_FORMS) == sum(len(row[1].split()) for row in PREFIXED_FORMS) + len(ANCHORED_FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted({form.source for form in VENDOR_FORMS}))
def test_the_pattern_of_a_service_takes_linear_time(source: str) -> None:
    for text in slow_texts(compiled_form(source), 50_000):
        for _ in compiled_form(source).finditer(text):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted({client.source for client in CLIENT_PATTERNS}))
def test_the_pattern_of_a_program_takes_linear_time(source: str) -> None:
    for text in slow_texts(compiled(source), 400):
        for _ in compiled(source).finditer(text):
            pass


@pytest.mark.parametrize(
    "unit",
    [
        "curl ", "docker login ", "mysql -p", "machine a ", "default ", "cookie: a=", "cookie: a=b;", "a:b@", "a:bcd@x.", "|---|\n",
        "| password |\n|--|\n", "a|", "@", "echo a:", "password: ${A:-", "password: a.b || ", "sqlplus a/", "openssl -pass ", " -u a:",
        "sshpass -p ", "\\\n", "password '", "identified by '", "_auth=", "pass=", "user pass=", "bot1", "Q~", "a.", "-us1",
    ],
)  # fmt: skip
def test_a_unit_repeated_takes_linear_time(unit: str) -> None:
    find_secrets(unit * (100_000 // len(unit)))
