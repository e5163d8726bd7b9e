"""Pairs that differ in a negation, a retraction, a sign or a letter, in the languages that people write.

The title of both is the same. A pair of the first table is two learnings, one of the second is one.
"""

from __future__ import annotations

import pytest

from echod.memory.model import Layer
from echod.memory.similarity import Learning, compare_learnings, features_of, files_in

TWO_LEARNINGS = [
    ("Sjalar oni trumo en la mar.", "Sjalar oni vulu trumo en la mar."),  # a language that no list has
    ("O worker fecha a porta.", "O worker deixou de fechar a porta."),
    ("Vaktmannen lukkar porten.", "Vaktmannen lukkar ikkje porten."),
    ("Bu yol doğru bir yoldur.", "Bu yol doğru bir yol değildir."),
    ("Пазете ключа в сейфа.", "Недейте пазете ключа в сейфа."),
    ("Call the old gate for the import.", "Refrain from calling the old gate for the import."),
    ("The gate is open at night.", "The gate was open at night."),
    ("The gate holds the rows for a day.", "The gate sometimes holds the rows for a day."),
    ("The line takes 20 Mb at most.", "The line takes 20 MB at most."),
    ("The price is 7 € for a row.", "The price is 7 $ for a row."),
    ("Logs go to /opt/logs/app at night.", "Logs go to opt/logs/app at night."),
    ("The page is in app/(admin)/page.tsx for now.", "The page is in app/admin/page.tsx for now."),
    ("The page is in app/[slug]/page.tsx for now.", "The page is in app/[[slug]]/page.tsx for now."),
    ("The page is in app/[...slug]/page.tsx for now.", "The page is in app/[[...slug]]/page.tsx for now."),
    ("The page is in app/(.)photo/page.tsx for now.", "The page is in app/(..)photo/page.tsx for now."),
    ("The helper is in app/_parts/a.ts for now.", "The helper is in app/parts/a.ts for now."),
    ("The class `Row` is the one to use.", "The class `row` is the one to use."),
    ("Read the table `order` for the sum.", "Read the table `orders` for the sum."),
    ("The hook is at http://hook.example/a for now.", "The hook is at https://hook.example/a for now."),
    ("Reports are cached on server A.", "Reports are cached on server B."),
    ("Use option a for the import of all rows.", "Use option b for the import of all rows."),
    ("Copy the rows to disk C before the move.", "Copy the rows to disk D before the move."),
    ("The drive is mounted at C on the build host.", "The drive is mounted on the build host."),
    ("Plan A is used for the release train.", "Plan B is used for the release train."),
    ("The clock of the server runs at UTC+2 all year.", "The clock of the server runs at UTC-2 all year."),
    ("The clock of the server runs at GMT+5 all year.", "The clock of the server runs at GMT−5 all year."),
    ("Match the files with `*` in the filter.", "Match the files with `**` in the filter."),
    ("Match the files src/*.ts in the filter.", "Match the files src/**/*.ts in the filter."),
    ("The parser is written in C for speed.", "The parser is written in C++ for speed."),
    ("The parser is written in C for speed.", "The parser is written in C# for speed."),
    ("Compare ids with `==` in the guard.", "Compare ids with `===` in the guard."),
    ("Compare ids with == in the guard.", "Compare ids with === in the guard."),
    ("Compare ids with `!=` in the guard.", "Compare ids with `!==` in the guard."),
    ("Use `a && b` for the guard in the loader.", "Use `a & b` for the guard in the loader."),
    ("Use `a || b` for the guard in the loader.", "Use `a ?? b` for the guard in the loader."),
    ("Call it with `-v` in the pipeline of the tests.", "Call it with `-V` in the pipeline of the tests."),
    ("Format the day with `%Y` in the log name.", "Format the day with `%y` in the log name."),
    ("Match digits with `\\d` in the pattern.", "Match digits with `\\D` in the pattern."),
    ("Use `x?.y` in the loader of the page.", "Use `x.y` in the loader of the page."),
    ("Read `a[0]` first in the loader.", "Read `a[1]` first in the loader."),
    ("The mark is `n + 1` in the pager.", "The mark is `n - 1` in the pager."),
    ("Pass `*args` to the wrapper of the job.", "Pass `**args` to the wrapper of the job."),
    ("Pass `&value` to the wrapper of the job.", "Pass `value` to the wrapper of the job."),
    ("Use `_id` as the key of the row.", "Use `id` as the key of the row."),
    ("Use tar -x for the archive at night.", "Use tar -c for the archive at night."),
    (
        "Die Berichte werden auf dem Server zwischengespeichert.",
        "Die Berichte werden nicht mehr auf dem Server zwischengespeichert.",
    ),
    ("Die Berichte werden zwischengespeichert.", "Die Berichte werden keinesfalls zwischengespeichert."),
    ("Les rapports sont mis en cache.", "Les rapports ne sont jamais mis en cache."),
    ("Les rapports utilisent le cache du serveur.", "Les rapports n'utilisent plus le cache du serveur."),
    ("Los informes se guardan en la caché.", "Los informes ya no se guardan en la caché."),
    ("Os relatórios ficam no cache do servidor.", "Os relatórios nao ficam no cache do servidor."),
    ("I report sono nella cache del server.", "I report non sono nella cache del server."),
    ("Rapporten worden op de server bewaard.", "Rapporten worden nooit op de server bewaard."),
    ("Raporty trzymamy w pamięci serwera.", "Raportów nie trzymamy w pamięci serwera."),
    ("Raporty są w pamięci serwera.", "Raporty nie są w pamięci serwera."),
    ("Отчёты кэшируются на сервере.", "Отчёты больше не кэшируются на сервере."),
    ("Звіти кешуються на сервері.", "Звіти ніколи не кешуються на сервері."),
    ("Raporlar sunucuda önbelleğe alınmalı.", "Raporlar sunucuda önbelleğe alınmamalı."),
    ("Raporlar sunucuda önbellekte tutulur.", "Raporlar sunucuda önbellekte tutulmaz."),
    ("Önbellek sunucuda gerekli.", "Önbellek sunucuda gerekli değil."),
    ("Báo cáo được lưu trên máy chủ.", "Báo cáo không được lưu trên máy chủ."),
    ("Báo cáo được lưu trên máy chủ.", "Báo cáo đừng được lưu trên máy chủ."),
    ("Laporan disimpan di server.", "Laporan jangan disimpan di server."),
    ("Laporan disimpan di server.", "Laporan tidak lagi disimpan di server."),
    ("报告缓存在服务器上。", "报告不再缓存在服务器上。"),
    ("报告必须缓存在服务器上。", "报告切勿缓存在服务器上。"),
    ("报告缓存在服务器上。", "已废弃：报告缓存在服务器上。"),
    ("レポートはサーバーにキャッシュする。", "レポートはサーバーにキャッシュしない。"),
    ("レポートはサーバーにキャッシュする。", "レポートはサーバーにキャッシュするな。"),
    ("レポートはサーバーにキャッシュする。", "廃止：レポートはサーバーにキャッシュする。"),
    ("보고서는 서버에 캐시한다.", "보고서는 서버에 캐시하지 않는다."),
    ("보고서는 서버에 캐시한다.", "보고서는 서버에 캐시하지 마라."),
    ("보고서는 서버에 캐시한다.", "보고서는 서버에 안 캐시한다."),
    ("تخزين التقارير في الخادم مطلوب.", "تخزين التقارير في الخادم غير مطلوب."),
    ("التقارير تخزن في الخادم.", "التقارير لم تعد تخزن في الخادم."),
    ("रिपोर्ट सर्वर पर रखें।", "रिपोर्ट सर्वर पर मत रखें।"),
    ("रिपोर्ट सर्वर पर रखी जाती है।", "रिपोर्ट सर्वर पर नहीं रखी जाती है।"),
    ("গোপন রিপোর্ট সার্ভারে রাখা হয়।", "গোপন রিপোর্ট সার্ভারে রাখা হয় না।"),
    ("รายงานเก็บในเซิร์ฟเวอร์", "รายงานไม่เก็บในเซิร์ฟเวอร์"),
    ("רשום את הדוח בשרת.", "אל תרשום את הדוח בשרת."),
    ("הדוח נשמר בשרת.", "הדוח אינו נשמר בשרת."),
    ("Οι αναφορές αποθηκεύονται.", "Οι αναφορές δεν αποθηκεύονται."),
    ("Az adatok a szerveren vannak.", "Az adatok nincsenek a szerveren vannak."),
    ("Jelentések tárolva a szerveren.", "Jelentések soha tárolva a szerveren."),
    ("Raportit tallennetaan palvelimelle.", "Raportit ei tallennetaan palvelimelle."),
    ("Rapoartele se salvează pe server.", "Rapoartele nu se salvează pe server."),
    ("Hlášení se ukládá na serveru.", "Hlášení se neukládá na serveru."),
    ("Izvještaji se spremaju na server.", "Izvještaji se ne spremaju na server."),
    ("گزارش روی سرور ذخیره شود.", "گزارش روی سرور ذخیره نشود."),
    ("رپورٹ سرور پر رکھیں۔", "رپورٹ سرور پر نہ رکھیں۔"),
    ("Ripoti zihifadhiwe kwenye seva.", "Ripoti zisihifadhiwe kwenye seva."),
    ("Ang mga ulat ay itago sa server.", "Ang mga ulat ay huwag itago sa server."),
    ("The header loses the session after refresh.", "RESOLVED - the header loses the session after refresh."),
    ("The header loses the session after refresh.", "[FIXED] The header loses the session after refresh."),
    ("The header loses the session after refresh.", "The header loses the session after refresh (no longer)."),
    ("The header loses the session after refresh.", "The header loses the session after refresh (fixed)."),
    ("The header loses the session after refresh.", "Obsolete: the header loses the session after refresh."),
    ("The header loses the session after refresh.", "Not true: the header loses the session after refresh."),
    ("The header loses the session after refresh.", "It is a myth that the header loses the session after refresh."),
    ("The header loses the session after refresh.", "The header formerly lost the session after refresh."),
    ("The header loses the session after refresh.", "The header no longer loses the session after refresh."),
    ("The header loses the session after refresh.", "Correction: the header loses the session after refresh."),
    ("The header loses the session after refresh.", "Retracted. The header loses the session after refresh."),
    ("The header loses the session after refresh.", "~~The header loses the session after refresh.~~"),
    ("Cache reports on the server.", "Quit caching reports on the server."),
    ("Cache reports on the server.", "Cache reports on the server was wrong."),
    ("Cache reports on the server.", "Skip caching reports on the server."),
    ("Cache reports on the server.", "Please disregard: cache reports on the server."),
    ("Cache reports on the server.", "❌ Cache reports on the server."),
    ("Cache reports on the server.", "Cache reports only on the server."),
    ("Die Kopfzeile verliert die Sitzung.", "Veraltet: Die Kopfzeile verliert die Sitzung."),
    ("Die Kopfzeile verliert die Sitzung.", "Behoben – Die Kopfzeile verliert die Sitzung."),
    ("L'entête perd la session.", "Corrigé : l'entête perd la session."),
    ("La cabecera pierde la sesión.", "Obsoleto: la cabecera pierde la sesión."),
    ("O cabeçalho perde a sessão.", "Corrigido: o cabeçalho perde a sessão."),
    ("Заголовок теряет сессию.", "Исправлено: заголовок теряет сессию."),
    ("Заголовок теряет сессию.", "Раньше заголовок терял сессию."),
    ("人に権限を与える設定にする。", "人々に権限を与える設定にする。"),
    ("時に再試行する設定にする。", "時々に再試行する設定にする。"),
    ("เก็บรายงานช้าในระบบ", "เก็บรายงานช้าๆในระบบ"),
    ("Die Kurve heißt α im Bericht der Messung.", "Die Kurve heißt β im Bericht der Messung."),
    ("Отчёт лежит в узле А кластера.", "Отчёт лежит в узле Б кластера."),
    ("रिपोर्ट को खाता में रखें और भेजें।", "रिपोर्ट को खोता में रखें और भेजें।"),
]
ONE_LEARNING = [
    (
        "Await the session before commit, or rows are lost.",
        "Await the session before commit, or some rows are lost silently.",
    ),
    ("Always `await` the **session** before `commit`.", "Always await the session before commit."),
    ("- Close the pool in teardown.", "Close the pool in teardown."),
    ("Die Verbindung im Abbau schließen.", "Die Verbindung im Abbau stets schließen."),
    ("Cache reports on server A of the lab.", "Cache the reports on server A of the lab."),
    ("Use a pool for the tests of the job.", "Use the pool for the tests of the job."),
    ("提交之前要等待数据库会话", "提交之前要等待数据库的会话"),
    ("Отчёты кэшируются на сервере.", "Отчёты всегда кэшируются на сервере."),
    ("Run `make test` before the push to main.", "Run `make test` before each push to main."),
    ("Call `flush()` and then `close()` in teardown.", "Always call `flush()` and then `close()` in the teardown."),
    ("The worker holds the lock of the queue.", "The **worker** holds the lock of the *queue*."),
]

PATHS = [
    ("src/app/(shop)/page.tsx:12", {"src/app/(shop)/page.tsx"}),
    ("`src/app/(shop)/[id]/page.tsx:3-5`", {"src/app/(shop)/[id]/page.tsx"}),
    (
        "app/(auth)/[...slug]/page.tsx, app/[[...all]]/route.ts",
        {"app/(auth)/[...slug]/page.tsx", "app/[[...all]]/route.ts"},
    ),
    ("see (src/app/page.tsx) and [src/a/b.ts](src/a/b.ts)", {"src/app/page.tsx", "src/a/b.ts"}),
    ("[page](src/app/(shop)/page.tsx)", {"src/app/(shop)/page.tsx"}),
    ("pages/users/[id].tsx", {"pages/users/[id].tsx"}),
    ("routes/users.$id.tsx", {"routes/users.$id.tsx"}),
    ("app/@modal/(.)photo/[id]/page.tsx", {"app/@modal/(.)photo/[id]/page.tsx"}),
    ("src/routes/[slug]/+page.svelte:3", {"src/routes/[slug]/+page.svelte"}),
    ("src/{tenant}/a.py", {"src/{tenant}/a.py"}),
    ("load(a/b.py)", {"a/b.py"}),
]


def learned(body: str, evidence: str | None = None) -> Learning:
    return Learning("Report cache", body, evidence, Layer.INSCRIBED)


@pytest.mark.parametrize(("one", "other"), TWO_LEARNINGS)
def test_what_disagrees_is_two_learnings(one: str, other: str) -> None:
    found = compare_learnings(features_of(learned(one)), features_of(learned(other)))

    assert not found.duplicate
    assert found == compare_learnings(features_of(learned(other)), features_of(learned(one)))


@pytest.mark.parametrize(("one", "other"), ONE_LEARNING)
def test_what_agrees_is_one_learning(one: str, other: str) -> None:
    found = compare_learnings(features_of(learned(one)), features_of(learned(other)))

    assert found.duplicate, found


@pytest.mark.parametrize("text", sorted({text for pair in TWO_LEARNINGS + ONE_LEARNING for text in pair}))
def test_a_text_is_a_duplicate_of_itself(text: str) -> None:
    assert compare_learnings(features_of(learned(text)), features_of(learned(text))).duplicate


@pytest.mark.parametrize(("evidence", "files"), PATHS)
def test_brackets_belong_to_a_path(evidence: str, files: set[str]) -> None:
    assert files_in(evidence) == files


def test_files_of_two_route_groups_are_not_the_same_evidence() -> None:
    body = "The page has no error boundary, so one failing widget blanks it."
    one, other = (features_of(learned(body, f"src/app/({group})/page.tsx:12")) for group in ("shop", "admin"))

    assert not compare_learnings(one, other).duplicate
