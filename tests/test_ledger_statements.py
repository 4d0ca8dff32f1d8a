"""What sentences state, in each language: rules, preferences, decisions, tasks, or nothing."""

from __future__ import annotations

import pytest

from conspectus.ledger.statements import read, stated

STATED = {
    "rule": """
Never commit directly to the release branch.
You must not contact customers on weekends.
Always answer in British English.
Responses should never be longer than 200 words.
Keep the total under 1,500 USD.
The budget is 4,000 EUR.
Don't delete anything without asking me.
No emojis in the commit messages.
Under no circumstances may the backup be touched.
The report is due by 14 June.
At most three people may have access.
Uploads are limited to 25 MB.
Only deploy with the approval of the on-call engineer.
Anything above 300 euros has to be approved by me first.
From now on, every pull request needs two reviewers.
Please don't mention the client by name.
Make sure that the tests pass before you push.
The timeout for the payment service is capped at 30 seconds.
Nobody may log in as root.
Ask me before you send anything.
Do not use tabs.
Deliveries have to arrive no later than 8 am.
Pushe niemals direkt auf main.
Du darfst keine Kundendaten weitergeben.
Antworte mir bitte immer auf Deutsch.
Das Budget liegt bei maximal 800 Euro.
Die Frist ist der 3. Mai, spätestens um 12 Uhr.
Bitte keine Emojis verwenden.
Ohne meine Freigabe wird nichts verschickt.
Mehr als 5 Versuche sind nicht erlaubt.
Die Datei darf höchstens 10 MB groß sein.
Ab sofort müssen alle Rechnungen geprüft werden.
Verwenden Sie stets die neue Vorlage.
Ne pousse jamais directement sur main.
Il ne faut pas dépasser 800 euros.
Réponds toujours en français.
Le rapport doit être rendu au plus tard le 3 mai.
Aucune dépense sans mon accord.
Les mots de passe ne doivent jamais apparaître dans les journaux.
Il est interdit de modifier les fichiers de configuration.
À partir de maintenant, chaque commande doit être validée.
Nunca subas cambios directamente a main.
No toques la base de datos de producción.
El informe debe entregarse a más tardar el 3 de mayo.
Responde siempre en español.
El presupuesto es de 800 euros como máximo.
Está prohibido compartir contraseñas.
No envíes nada sin mi autorización.
A partir de ahora todos los pedidos deben revisarse.
绝不要直接推送到主分支。
没有我的同意，不得删除任何文件。
预算不超过800元。
报告最迟5月3日提交。
请务必用中文回答。
以后所有订单都必须先审核。
禁止在日志里打印密码。
每个函数最多40行。
mainブランチには決して直接プッシュしないでください。
予算は8万円以内でお願いします。
報告書は5月3日までとします。
必ず日本語で回答してください。
パスワードをログに出力することは禁止です。
私の許可なくファイルを削除してはいけません。
今後は、すべての注文を必ず確認してください。
main 브랜치에 절대 직접 푸시하지 마세요.
예산은 80만 원을 넘지 않도록 하세요.
보고서는 5월 3일까지 제출해야 합니다.
반드시 한국어로 답변해 주세요.
제 허락 없이 파일을 삭제하면 안 됩니다.
비밀번호를 로그에 남기는 것은 금지입니다.
앞으로 모든 주문은 반드시 검토해 주세요.
""",
    "preference": """
I prefer tables over long paragraphs.
I'd rather get one long mail than ten short ones.
Ideally the charts are in black and white.
I like my summaries short.
Ich mag kurze Antworten lieber.
Am liebsten hätte ich alles in einer Tabelle.
Je préfère les réponses courtes.
J'aime mieux recevoir un seul courriel.
Prefiero respuestas cortas.
Me gustan más los resúmenes breves.
我更喜欢简短的回答。
最好用表格。
短い回答のほうが好きです。
できれば表でお願いします。
짧은 답변을 선호합니다.
표로 정리하는 게 더 좋아요.
""",
    "decision": """
We decided to use Postgres because the team knows it.
Let's go with the blue logo, as it prints better.
We settled on Thursday for the workshop.
The root cause was a missing index on the orders table.
We agreed to drop support for the old client.
Wir haben uns für Postgres entschieden, weil das Team es kennt.
Die Ursache war ein fehlender Index.
Nous avons décidé de garder l'ancien logo, car il s'imprime mieux.
La cause était un index manquant.
Hemos decidido usar Postgres porque el equipo lo conoce.
La causa era un índice que faltaba.
我们决定用Postgres，因为团队熟悉它。
根本原因是订单表缺少索引。
Postgresを使うことに決めました。
原因はインデックスの不足でした。
Postgres를 쓰기로 했어요.
원인은 인덱스가 없어서였습니다.
""",
    "task": """
TODO: update the changelog.
Still to do: call the landlord.
Next step: migrate the staging database.
We still have to order the chairs.
Please also update the README before Friday.
Remind me to renew the certificate.
Noch zu tun: den Vermieter anrufen.
Wir müssen noch die Stühle bestellen.
Vergiss nicht, das Zertifikat zu erneuern.
À faire : appeler le propriétaire.
Il reste à commander les chaises.
N'oublie pas de renouveler le certificat.
Pendiente: llamar al casero.
Falta por pedir las sillas.
No olvides renovar el certificado.
待办：给房东打电话。
还需要订椅子。
别忘了更新证书。
やること：大家さんに電話する。
椅子の注文がまだ残っています。
証明書の更新を忘れずにお願いします。
할 일: 집주인에게 전화하기.
의자 주문이 남아 있습니다.
인증서 갱신하는 것 잊지 마세요.
""",
    "": """
I must say, that was a nice surprise.
Never mind, I found it.
You must be tired by now.
It never rains here in summer.
I have never seen such a thing.
We always have so much fun.
Could you always do that?
Must I really do that by hand?
At least it did not rain.
The train is never on time.
He always forgets his keys.
We have not decided yet whether to move.
If I had more money, I would never work again.
The page says "you must always log in first".
No problem, take your time.
My boss always said that one must never give up.
Das muss ein Irrtum sein.
Ich muss sagen, das gefällt mir.
Er kommt immer zu spät.
Wie immer war der Zug voll.
Das habe ich noch nie gesehen.
Wir haben uns noch nicht entschieden.
Muss ich das wirklich selbst machen?
Je dois avouer que c'est joli.
Il est toujours en retard.
Je n'ai jamais vu ça.
Pas toujours, mais souvent.
On n'a pas encore décidé.
No siempre funciona.
Siempre llega tarde.
Nunca he visto algo así.
Debo decir que me encanta.
Todavía no hemos decidido nada.
不要客气，随时找我。
我从来没见过这样的事。
他总是迟到。
你一定要这样做吗？
我们还没决定去哪里。
必ずしもそうとは限りません。
彼はいつも遅刻します。
そんなものは見たことがありません。
まだ決めていません。
꼭 그런 건 아니에요.
그는 항상 늦어요.
그런 건 본 적이 없어요.
아직 결정하지 못했어요.
""",
}
CASES = [(kind, sentence) for kind, text in STATED.items() for sentence in text.strip().split("\n")]


@pytest.mark.parametrize(("kind", "sentence"), CASES)
def test_a_sentence_of_a_user_states_what_a_speaker_would_say(kind: str, sentence: str) -> None:
    assert stated(sentence, "user") == kind


@pytest.mark.parametrize("role", ["assistant", "tool", "other"])
def test_only_users_and_systems_set_rules(role: str) -> None:
    rules = [s for s in STATED["rule"].strip().split("\n") if s]
    assert not [s for s in rules if stated(s, role) in ("rule", "preference")]
    assert all(stated(s, "system") == "rule" for s in rules[:10])


def test_items_under_a_heading_are_what_the_heading_says() -> None:
    text = "Rules:\n- tabs, not spaces\n- British spelling\n\nThat is all.\n\nTo do:\n1. tidy up"
    found = [(one.states, one.text) for one in read(text, "user") if one.states]
    assert found == [
        ("rule", "tabs, not spaces"),
        ("rule", "British spelling"),
        ("task", "tidy up"),
    ]
    assert not [one for one in read(text, "assistant") if one.states == "rule"]


def test_boxes_are_work_that_is_open_or_done() -> None:
    found = [(one.states, one.text) for one in read("- [ ] call Ann\n- [x] pay rent", "user")]
    assert found == [("task", "call Ann"), ("done", "pay rent")]


def test_what_is_quoted_or_stands_in_a_fence_states_nothing() -> None:
    text = "> You must never do that.\n\n```\n# never touch this, you must not\n```\nFine with me."
    assert not [one for one in read(text, "user") if one.states]


@pytest.mark.parametrize(
    "line",
    [
        "2031-04-05 12:00:01 WARN retries: at most 3 are allowed from now on",
        "[2031-04-05T12:00:01.250Z] ERROR never push without approval",
        "2031/04/05 12:00:01,120 [INFO] the deadline is now 2031-05-01",
    ],
)
def test_a_line_of_a_log_states_nothing_and_what_follows_does(line: str) -> None:
    said = [s.text for s in read(f"{line}\nNever deploy on Fridays.\n{line}", "user") if s.states]
    assert said == ["Never deploy on Fridays."]
    assert [s.text for s in read(line, "user") if s.states or s.changes] == []
