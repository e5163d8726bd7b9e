"""The words with which people deny, forbid and take back, and with which they advise, in the languages that they write.

A word too many among the negations costs a line, because two texts are kept that say the same. A missing one costs a
learning. So those lists are broad, and a word may be on them for one language although it means something harmless in
another one. Words are as `fold` leaves them, with and without the signs that many keyboards lack.

The words of advice rank learnings. English ones are in `specificity`, so that none of these is an English word.
"""

from __future__ import annotations

import re
import unicodedata


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", unicodedata.normalize("NFKC", text).casefold()))


LISTED_NEGATIONS = _words("""
    no not never none nothing nowhere neither nor non without except unless
    avoid avoids avoided avoiding lack lacks lacking fail fails failed failing refuse refuses refused
    forbid forbids forbidden prohibit prohibits prohibited prevent prevents prevented hardly rarely seldom unlike
    dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt mustnt neednt hasnt havent aint
    only skip skips skipped skipping ignore ignores ignored omit omits omitted instead contrary barely scarcely

    nicht kein keine keinen keinem keiner keines nie niemals ohne weder niemand nichts nirgends nirgendwo keinesfalls
    keineswegs verboten vermeiden vermeide untersagt kaum statt anstatt ausser außer nur
    ne pas jamais aucun aucune ni rien sans personne nullement interdit interdite eviter éviter evitez
    évitez sauf seulement
    nunca jamás jamas sin tampoco ningún ningun ninguno ninguna nada nadie prohibido evitar evite excepto salvo sólo
    não nao jamais sem nenhum nenhuma nem ninguém ninguem proibido exceto
    mai senza né nessun nessuno nessuna niente nulla vietato evitare evita tranne mica
    niet geen nooit niets niemand noch zonder nergens verboden vermijd vermijden behalve alleen
    inte ej aldrig ingen inget inga utan icke förbjudet undvik endast
    ikke aldri aldrig ingen intet ingenting uten uden forbudt unngå undgå ekki
    ei emme ette eivät eivät älä älkää koskaan ilman ära ärge ilma
    nie nigdy bez żaden żadna żadne nikt nic nigdzie ani zakazane unikać unikaj należy_nie brak
    ne nikdy nikoliv bez žádný žádná žádné nic nikdo nesmí nelze není nie je_nie nikdy žiadny nemôže nesmie
    nem ne soha sem sosem semmi senki nélkül tilos nincs nincsen nincsenek sincs sincsenek ninc
    nu niciodată niciodata fără fara nimic nimeni niciun nicio interzis
    nije nisu nikad nikada nemoj nemojte nema nemaju bez nikoli nikar ni niso
    nuk mos s'ka asnjëherë nav nedrīkst nekad nėra niekada
    değil degil yok hayır hayir asla hiç hic olmadan yasak sakın deйl deyil emas yo'q hech
    không khong chưa chua đừng dung chẳng chang chẳ đâu cấm đưừng tránh tranh thôi chớ
    tidak tak bukan jangan belum tanpa dilarang hindari tiada tidaklah jgn gak nggak enggak kagak usah
    hindi huwag wala walang bawal hwag siyo sio bila usi kamwe hapana ba kada babu ez gabe sekula
    ní níl ná ddim nid peidiwch byth non neč
    не ни нет нельзя никогда ничего никто нигде без запрещено запрещена запрещён избегайте избегать
    вряд кроме только лишь ні немає не ніколи нічого ніхто заборонено уникати уникайте тільки лише
    няма никога немој није нема емес жоқ биш гүй буу
    δεν δε μη μην όχι οχι ποτέ ποτε χωρίς χωρις δίχως κανένας καμία τίποτα ούτε μήτε απαγορεύεται αποφύγετε
    לא אל אין בלי ללא אסור לעולם אף שום להימנע אינו אינה אינם
    لا لم لن ليس ليست ليسوا غير بدون دون عدم بلا أبدا أبدًا ما كلا ممنوع تجنب يمنع مش مو
    نہیں نه نہ مت نباید نیست بدون هرگز کبھی بغیر نا ندارد نکنید
    नहीं नही न ना मत कभी बिना नाही नको नका होइन छैन नगर्नुहोस् केवल सिर्फ
    না নয় নেই নি কখনও কখনো ছাড়া ਨਹੀਂ ਨਾ ਨા નથી નહીં નહીં નહિ ન
    இல்லை கூடாது வேண்டாம் அல்ல లేదు కాదు వద్దు కూడదు ಇಲ್ಲ ಬೇಡ ಅಲ್ಲ ഇല്ല അല്ല അരുത് නැහැ එපා
    არ არა ვერ ნუ չի չեն չե մի ոչ አይደለም የለም አት
""")
"""Words that negate, forbid or restrict the next word."""

RETRACTIONS = _words("""
    deprecated obsolete outdated retracted withdrawn superseded fixed resolved solved wrong incorrect false
    untrue invalid
    myth disproved disproven refuted reverted rescinded void revoked cancelled canceled stop stops stopped
    stopping cease
    ceased quit formerly previously erroneous erroneously mistaken mistakenly misleading stale expired undo
    undone correction
    corrected wontfix abandoned dropped supposedly allegedly debunked retired scrapped discontinued sunset
    overruled dead
    moot bogus hoax nonsense inaccurate disputed invalidated nullified repealed unfounded disregard
    disabled removed closed

    veraltet überholt ueberholt behoben falsch hinfällig aufgehoben früher ehemals vormals gelöst erledigt ungültig
    widerrufen zurückgezogen irrtum irrtümlich korrigiert abgeschafft eingestellt gestrichen unzutreffend
    stimmt_nicht mehr
    obsolète obsolete périmé faux fausse corrigé résolu annulé abandonné autrefois auparavant arrêter
    arrêtez cesser cessez
    déprécié caduc erroné erreur retiré révoqué plus ancien anciennement désuet invalide
    obsoleto obsoleta falso falsa corregido resuelto anulado descartado deje dejar dejen antes antiguamente
    desactualizado
    erróneo equivocado incorrecto retirado cancelado anticuado ya obsoletos inválido
    corrigido resolvido anulado descartado deixar deixe antigamente desatualizado errado incorreto retirado
    já ultrapassado
    corretto risolto annullato abbandonato smettere smetti superato sbagliato errato ritirato più già deprecato un_tempo
    verouderd vervallen opgelost onjuist fout voorheen vroeger ingetrokken achterhaald gestopt stoppen meer
    hersteld ongeldig
    föråldrad föråldrat fel felaktig åtgärdat löst tidigare sluta längre upphävd forældet foreldet løst
    rettet feil forkert
    lengre længere stopp tidligere vanhentunut korjattu virheellinen väärä aiemmin enää
    przestarzałe przestarzały przestarzała nieaktualne nieaktualny naprawione naprawiono błędne błąd fałsz
    fałszywe dawniej
    kiedyś wcześniej już anulowane wycofane odwołane rozwiązane przestań niepoprawne
    zastaralé zastaralý opraveno vyřešeno dříve nepravda chybné zrušeno už již zastarané opravené zrušené
    elavult javítva téves hibás visszavonva már régen învechit rezolvat greșit anulat fost zastarjelo ispravljeno
    eski eskimiş düzeltildi yanlış yanlis artık artik geçersiz iptal çözüldü eskiden bırakın kaldırıldı hatalı
    sai ngưng ngung hết xóa bỏ hủy cũ nhầm dừng đã usang salah dulu dahulu berhenti hentikan diperbaiki
    dibatalkan keliru
    kedaluwarsa kadaluarsa lagi lapuk tertinggal ditarik luma mali dati itigil
    устарело устарел устарела устаревшее исправлено неверно ложь больше раньше прежде отменено ошибка
    ошибочно неправда решено отозвано хватит перестаньте прекратите неактуально было уже
    застаріло виправлено хибно раніше скасовано помилка помилково більше неправда вирішено вже припиніть
    остаряло поправено
    ξεπερασμένο διορθώθηκε λάθος παλιά πλέον πια ακυρώθηκε מיושן תוקן שגוי בוטל יותר בעבר
    قديم خطأ خاطئ ملغى ألغي سابقا سابقًا توقف توقفوا مهمل إصلاح كان كانت باطل كاذب منسوخ غلط دیگر قدیمی غلطی
    गलत पहले बंद रद्द अप्रचलित पुराना ठीक अब अमान्य हटाया झूठ ভুল বাতিল আগে தவறு
""")
"""Words that take a statement back, or say that it was true only once. On one side alone they make two learnings."""

UNSPACED_NEGATIONS = re.compile(
    unicodedata.normalize(
        "NFKC",
        # Chinese and Japanese
        "[不没沒無无勿别別非未莫否毋甭]|な(?:い|く|かっ|けれ|し)|ません|ずに|せず|ざる|まい|ぬ|(?<=[るすくうつむぶぐ])な(?![ぁ-ん])"
        "|だめ|ダメ|禁止|避免|严禁|嚴禁|拒绝|拒絕|のみ|だけ|只|仅"
        # taken back
        "|废弃|廢棄|作废|作廢|过时|過時|过期|錯誤|错误|误|誤|虚假|已修|修复|修復|修正済|已解决|已解決|解決済|撤回|撤销|撤銷|取消|停止|停用|曾经|曾經|以前|原先"
        "|廃止|非推奨|古い|やめ|中止|かつて|旧"
        # Korean
        "|않|못|없|아니|금지|말(?:아|라|고|것|지|자|아야)|마세요|마십시오|마라|(?<![가-힣])안(?![가-힣])|(?<![가-힣])말(?![가-힣])"
        "|폐기|수정됨|해결|틀림|틀렸|거짓|잘못|예전|이전|더는|더 이상|중단|중지|철회|취소|그만|오류"
        # Thai, Lao, Khmer, Burmese
        "|ไม่|ห้าม|อย่า|มิได้|มิ|ไร้|ปราศจาก|ยกเลิก|เลิก|หยุด|ผิด|ล้าสมัย|เคย|แก้ไขแล้ว|ບໍ່|ຢ່າ|ຫ້າມ|ເຊົາ|ຜິດ"
        "|មិន|ពុំ|កុំ|គ្មាន|ហាម|ឈប់|ខុស|မ|ဘူး|ရပ်",
    )
)
"""Negations and retractions in scripts that put no spaces between words, and in Korean."""

NEGATION_SIGNS = re.compile("!(?=[\\w(])|[\u00ac\u274c\u2717\u2718\u2716\U0001f6ab\u26d4\U0001f44e\U0001f5d1]|~~")
"""Signs that deny, forbid or cross out."""

RETRACTING_PHRASES = re.compile(
    r"\b(?:used to|no longer|any ?more|until recently|(?:it|this|that) (?:was|is) a mistake"
    r"|turned out|we thought|we assumed"
    r"|(?:is|was|are|were) (?:once|gone|over)|rolled back|nicht mehr|ne plus|ya no|j\u00e1 n\u00e3o|"
    r"non pi\u00f9|niet meer|inte l\u00e4ngre|ikke lenger)\b"
)
"""Phrases that say that a statement was true only once."""


def _advice(spaced: str, unspaced: str) -> re.Pattern[str]:
    """Return a pattern of whole words, of beginnings of words (`fehl*`), and of parts of scripts without spaces."""
    words = sorted(re.findall(r"\S+", unicodedata.normalize("NFKC", spaced)))
    whole = "|".join(re.escape(word.rstrip("*")).replace("_", r"\s+") + r"\w*" * word.endswith("*") for word in words)
    return re.compile(rf"\b(?:{whole})\b|{unspaced}", re.IGNORECASE)


RULE_ADVICE = _advice(
    """
    immer stets muss müssen musst sollte sollten sollst niemals nie darf dürfen stattdessen anstatt vermeide vermeiden
    unbedingt zwingend grundsätzlich auf_keinen_fall nur_wenn
    toujours doit doivent devez devrait devraient jamais éviter évitez évite il_faut plutôt impérativement obligatoire
    au_lieu
    siempre debe deben debería deberían nunca jamás evitar hay_que en_lugar_de en_vez_de obligatorio
    sempre deve devem devono nunca mai evitare em_vez_de invece_di bisogna occorre
    altijd moet moeten nooit vermijd vermijden in_plaats_van
    zawsze nigdy należy musi muszą trzeba unikać unikaj zamiast
    alltid altid aldrig aldri måste skal skall bör undvik i_stället i_stedet
    vždy nikdy musí je_třeba místo
    всегда никогда нельзя нужно следует должен должна должны надо обязательно вместо избегать избегайте необходимо
    завжди ніколи треба слід замість потрібно
    her_zaman asla daima gerekir zorunda yerine
    luôn phải đừng thay_vì selalu harus jangan sebaiknya
    """,
    "必须|必須|务必|務必|不要|不能|不得|不可|绝不|絕不|切勿|请勿|請勿|禁止|严禁|应该|應該|应当|應當|应改|避免|始终|始終|总是|總是|一定要|改用|而不是"
    "|必ず|べき|なければならない|してはいけない|してはならない|しないで|常に|絶対に|代わりに|避け"
    "|반드시|항상|절대|해야|하지 ?마|하지 ?말|대신|금지|피해야|हमेशा|कभी न|चाहिए|دائما|دائمًا|يجب|لا تستخدم|ต้อง|ห้าม|อย่า",
)
"""Words that state a rule."""

REMEDY_ADVICE = _advice(
    """
    verwend* benutz* nutzen setze setzen prüfe prüfen teste testen schließ* schliess* öffne* hinzufüg* ergänz* ersetz*
    entfern* änder* beheb* behoben aufnehmen sperre sperren wiederhol* lösung abhilfe
    utilis* ajout* remplac* supprim* vérifi* ferme fermer rouvr* corrig* définir
    usar utilizar añad* agregar agregue reemplaz* eliminar elimine verificar verifique comprob* cerrar corrig* solución
    adicionar adicione substituir fechar aggiung* sostitui* rimuov* verificare controllare chiudere soluzione
    gebruik* voeg_toe vervang* verwijder* controleer* sluit
    użyj używaj dodaj zastąp* usuń sprawdź zamknij popraw
    использ* добав* замен* удал* провер* закры* откры* исправ* решение
    використ* дода* замін* видал* перевір* закри* виправ*
    kullan* ekle* değiştir* kaldır* kontrol kapat*
    """,
    "使用|添加|加上|加入|替换|替換|改为|改為|改成|删除|刪除|检查|檢查|校验|验证|驗證|修复|修復|修改|关闭|關閉|打开|打開|设置|設置|确保|確保|重试|调用|清除"
    "|使う|使い|追加|置き換え|削除|確認|検証|修正|閉じ|開き|設定|사용|추가|교체|삭제|확인|검증|수정|닫아|설정",
)
"""Words that say what to do."""

FLAW_ADVICE = _advice(
    """
    weil fehlt fehlte fehlten fehlende* fehler falsch kaputt verliert verloren blockier* abbricht abstürz* stürzt
    undicht leck überschreib* veraltet
    parce_que manque manquait erreur erreurs fausse cassé perd perdu* bloque* plante fuite* écras* obsolète
    porque falta faltaba falla fallan roto pierde* bloquea* fuga sobrescrib* erro falha perde quebra errore fallisce
    потому отсутств* ошибк* ломает* теряет* завис* утечк* падает сбой
    ponieważ błąd brakuje omdat fout ontbreekt çünkü hata
    """,
    "因为|因為|由于|由於|错误|錯誤|失败|失敗|缺少|缺失|丢失|丟失|泄漏|洩漏|泄露|崩溃|崩潰|死锁|退出|无效|無效|覆盖|覆蓋|冲突|衝突|共用了"
    "|エラー|漏れ|クラッシュ|無効|原因|때문|오류|실패|누락|누수|충돌|잘못",
)
"""Words that say what went wrong."""

SEVERE_ADVICE = _advice(
    """
    kritisch* sicherheit* datenverlust schwerwiegend* sécurité crítico crítica seguridad segurança sicurezza
    критич* безопасност* krytyczn* bezpieczeństw*
    """,
    "严重|嚴重|安全|致命|数据丢失|重大|セキュリティ|심각|보안",
)
"""Words that name a high severity."""
