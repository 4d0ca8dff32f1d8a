"""Statements in everyday words, in seven languages: causes, choices, work, wishes, idle talk."""

from __future__ import annotations

import pytest

from conspectus.ledger.statements import stated

STATED = {
    "decision": """
The choir sounds thin because half the altos are ill.
The heating bill doubled since the thermostat was never reset.
We'll go with the blue curtains, as the red ones fade.
Die Fähre fällt aus, weil der Sturm zu stark ist.
Wir nehmen den größeren Bus, da die Kisten sonst nicht reinpassen.
El horno no calienta porque la resistencia está quemada.
Dejamos la cena en el patio, ya que dentro hace demasiado calor.
Le violon sonne faux parce que la corde est usée.
On prend le car du matin, vu que celui du soir est complet.
烤箱不热，是因为加热管烧断了。
晚饭就定在院子里，因为屋里太闷。
オーブンが温まらないのは、ヒーターが切れているからでした。
夕食は庭にします。
오븐이 안 데워지는 건 열선이 끊어진 탓입니다.
저녁은 마당에서 먹는 걸로 하겠습니다.
The greenhouse got too hot because the vent motor seized.
Two of the emails bounced since the domain had expired.
We'll stay with the Tuesday slot, as the pool is empty then.
I'll pick the cheaper caterer because both menus are the same.
Die Pumpe läuft trocken, weil das Ventil verkehrt herum sitzt.
Wir lassen die Plakate weg, da sie niemand liest.
Dass die Liste leer bleibt, liegt am falschen Filter.
La bomba se queda sin agua porque la válvula está al revés.
Cogemos el hostal del puerto, ya que admite perros.
La gotera viene de una teja suelta.
La pompe tourne à vide parce que la vanne est montée à l'envers.
Je garde l'ancien traiteur, puisque tout le monde l'aime bien.
水泵空转，因为阀门装反了。
就选靠海的那家旅馆，因为可以带狗。
ポンプが空回りするのは、弁が逆に付いているからです。
宿は海沿いのほうに決めました。犬を連れて行けるからです。
펌프가 헛도는 건 밸브가 거꾸로 달렸기 때문입니다.
펜션은 바닷가 쪽으로 하겠습니다.
The dishwasher stops halfway because the drain hose is kinked.
Half the invoices are missing since the export skips customers without a postcode.
It isn't because of the battery, it's a loose cable behind the dashboard.
The delay in the newsletter is due to a full mail queue.
The soup was too salty because the stock had been reduced twice.
We'll keep the old goalkeeper gloves, since the new ones slip.
Let's leave the tent at home, as the hut has free beds.
I'll take the aisle seat, because I have to get off first.
It'll be the smaller hall, because the large one echoes.
Der Trockner bleibt stehen, weil das Flusensieb verstopft ist.
Die Messwerte springen, da der Sensor in der Sonne hängt und falsch misst.
Dass der Zähler doppelt zählt, liegt daran, dass zwei Prozesse dieselbe Datei lesen.
Der Ausfall rührt von einer abgelaufenen Lizenz her.
Wir bleiben beim alten Trainingsplatz, da der neue keine Umkleiden hat.
Ich nehme den Frühzug, weil ich dann noch umsteigen kann.
Dann wird es der Hof, weil dort Schatten ist.
La lavadora no arranca porque la puerta no cierra del todo.
El fallo viene de que el cargador da muy poca corriente.
El retraso se debe a que el proveedor cambió de almacén.
Los correos no llegan porque el filtro los toma por publicidad.
Lo dejamos para octubre, ya que en septiembre no hay pista libre.
Me quedo con la mochila pequeña, porque cabe debajo del asiento.
Vamos con el autobús, puesto que el tren sale demasiado tarde.
Le four s'arrête parce que la sonde est mal enfoncée.
La panne est due à un condensateur gonflé.
Le site est lent parce qu'une requête parcourt toute la table.
L'erreur vient de ce que le script lit l'ancien dossier.
Je retiens le gîte du bas, vu que celui du haut n'a pas de chauffage.
On garde le maillot bleu, puisque le rouge est déjà pris.
Ce sera le jeudi, parce que la salle est fermée le mardi.
洗衣机不脱水，是因为里面的衣服太重。
报表打不开，因为文件名里有空格。
结论是水管接头老化造成的漏水。
由于硬盘满了，备份昨晚失败了。
就用旧的那台投影仪，因为新的没有接口。
我们坐高铁，因为机场离酒店太远。
就沿用去年的队服吧。
乾燥機が止まるのは、フィルターが詰まっているせいです。
昨夜のバックアップは、ディスクがいっぱいだったため失敗しました。
画面が固まったのは、古いドライバーを読み込んでいたからでした。
ケーブルの接触不良が原因で、音が途切れていました。
会場は小さいほうのホールにします。音が響きにくいからです。
合宿は去年と同じ宿に決めます。
靴は今のままで行きます。
식기세척기가 멈춘 건 배수 호스가 꺾였기 때문이에요.
어젯밤 백업이 실패한 까닭은 디스크가 꽉 찼기 때문입니다.
화면이 깨지는 건 오래된 드라이버 탓이에요.
숙소는 역에서 가까운 곳으로 하겠습니다.
유니폼은 작년 것 그대로 가겠습니다.
접촉 불량 때문에 소리가 자꾸 끊겼어요.
""",
    "task": """
The choir robes haven't been ironed yet.
I have to collect the medals from the engraver.
Die Medaillen müssen wir noch abholen.
Queda recoger las medallas.
Tengo que planchar las túnicas del coro.
Je dois encore passer chercher les médailles.
Il reste les robes à repasser.
奖牌还没去取。
我得把合唱团的衣服熨一下。
メダルを取りに行かないと。
衣装のアイロンがけを忘れないようにしないといけません。
메달을 찾으러 가야 해요.
합창단 옷을 아직 못 다렸어요.
We haven't told the neighbours yet.
The hall still needs to be booked.
Die Nachbarn müssen wir noch informieren.
Das Zelt ist noch nicht geflickt.
Hay que avisar a los vecinos.
Todavía falta la carpa.
Il faut prévenir les voisins.
La tente n'est pas encore réparée.
还得跟邻居打声招呼。
帐篷还没补好。
近所に知らせないといけません。
テントの修理がまだです。
이웃들에게 알려야 해요.
텐트를 아직 못 고쳤어요.
I still have to water the tomatoes on the balcony.
We haven't paid the coach driver yet.
The minutes of the last meeting remain to be typed up.
We need to rename the upload folder.
I need to get round to fixing the gate.
The gutter needs cleaning.
Wir müssen die Sicherungskopie umbenennen.
Der Kassenbericht ist noch nicht unterschrieben.
Die Anmeldung für das Turnier steht noch aus.
Es fehlt noch die Einladung an die Eltern.
Ich muss noch die Trikots waschen.
Wir müssen das Boot zur Werft bringen.
Hay que devolver las llaves al portero.
Falta imprimir los dorsales para la carrera.
Queda por confirmar el menú de la cena.
Todavía no hemos pagado el seguro del barco.
Tenemos que cambiar el filtro de la campana.
Me falta la firma del director.
Il reste donc à prévenir les parents.
Je n'ai pas encore commandé les maillots.
Il faut rendre les clés à la mairie.
On doit remplacer le joint de la fenêtre.
Nous n'avons pas encore réservé le car.
Il manque encore la signature du président.
球队的保险还没交。
我得抽空把阳台的门修一下。
报名表需要补一份。
还得给司机打个电话。
我们得把旧文件夹改个名。
ユニフォームを洗わないといけません。
保険の書類をまだ出していません。
鍵を管理人さんに返しておく必要があります。
バスの予約をしないと。
名簿の印刷を忘れないようにしないと。
아직 보험료를 못 냈어요.
현관문 손잡이를 손봐야 해요.
단체 버스를 예약해야겠어요.
열쇠를 관리실에 돌려줘야 해요.
아직 명단을 인쇄하지 못했습니다.
""",
    "rule": """
The sauna must never be left unattended.
Gäste dürfen höchstens zwei Handtücher nehmen.
No se puede usar el móvil en los vestuarios.
Interdiction de courir au bord du bassin.
泳池边一律不准奔跑。
プールサイドでは決して走らないでください。
수영장에서는 절대 뛰지 마세요.
No more than 12 people may be in the sauna.
Kinder dürfen nur mit Begleitung ins Becken.
Los perros deben ir siempre atados.
Les chiens doivent toujours être tenus en laisse.
狗必须一直拴着绳子。
犬には必ずリードを付けてください。
개는 반드시 목줄을 해 주세요.
Never feed the dog from the table.
You must lock the boathouse every evening.
A training session may last 90 minutes at most.
Der Hund darf nie auf das Sofa.
Ihr müsst jeden Abend die Halle abschließen.
Niemand darf ohne Schwimmweste ins Boot.
Nunca dejes la puerta del gallinero abierta.
Cada jugador debe traer siempre su licencia.
La cuota no puede pasar de 30 euros.
Ne laissez jamais le portail ouvert.
Chaque joueur doit apporter sa licence à tous les matchs.
La cotisation ne doit pas dépasser 30 euros.
每次训练结束后必须锁好器材室。
会费最多300元。
不要在群里发客人的照片。
練習のあとは必ず倉庫の鍵をかけてください。
会費は3000円以内でお願いします。
선수 사진을 절대 단체방에 올리지 마세요.
회비는 3만 원을 넘지 않도록 하세요.
""",
    "preference": """
Ich hab's lieber ruhig beim Arbeiten.
Nos gusta más la playa que la montaña.
J'aime mieux le thé.
山より海の方が好きです。
I like replies better when they are short.
Mir ist der Vormittag lieber.
Me gustan más los grupos pequeños.
I'd sooner have one long call than five short ones.
I like my coffee reports plain.
Ich mag lieber kurze Sätze.
Mir sind Bilder lieber als Text.
Los mensajes me gustan cortitos.
Prefiero que me llames por la tarde.
J'aime mieux les horaires du matin.
Les listes courtes me plaisent plus.
我比较喜欢靠窗的位子。
我还是更爱坐火车。
朝の連絡の方がありがたいです。
写真より図の方が好きです。
저는 창가 자리가 더 좋아요.
짧은 문장이 더 편해요.
""",
    "": """
Dogs always find the muddiest puddle.
I must have left it on the bus.
We laughed because he looked so serious.
Kinder finden immer die tiefste Pfütze.
Ich musste weinen, weil es so schön war.
Los niños siempre encuentran el charco.
Me reí porque ponía cara seria.
Les enfants trouvent toujours la flaque.
J'ai ri parce qu'il avait l'air sérieux.
孩子总能找到水坑。
我笑了，因为他太认真了。
子どもは必ず水たまりを見つけますよね。
아이들은 항상 물웅덩이를 찾아내죠.
My phone always dies at the worst moment.
You must have been so proud!
I'm happy because summer is here.
Mein Handy ist immer im falschen Moment leer.
Das muss herrlich gewesen sein!
Mi móvil siempre se apaga en el peor momento.
¡Debe de haber sido precioso!
Mon portable lâche toujours au pire moment.
Ça devait être magnifique !
我的手机总在最糟的时候没电。
当时一定很美吧！
肝心なときにいつも電池が切れるんですよ。
さぞきれいだったでしょうね。
제 전화기는 꼭 중요한 순간에 꺼지더라고요.
I'm late because the train broke down.
I cried because the film was so sad.
She loves the sea because it calms her.
Heaters always break on Sundays.
Of course, we never delete anything.
If it were up to me, I'd never write a report again.
Must be nice to live there!
I have to admit you were right.
We need to talk more often.
My sister comes from a small town.
It never gets old.
The deadline was a nightmare.
Unbedingt.
Auf keinen Fall!
Das muss man dir lassen.
Natürlich löschen wir nie etwas.
Wenn es nach mir ginge, würde ich nie wieder kochen.
Die Heizung streikt immer am Sonntag.
Ich bin müde, weil der Nachbar gefeiert hat.
Das Haus liegt am See.
Ich muss lachen.
¡Ay, no, espera!
Siempre se estropea en domingo.
Por supuesto que nunca borramos nada.
Si fuera por mí, nunca cocinaría.
Te debo una cena.
Estoy cansada porque no he dormido.
Hay que ver cómo crece este niño.
Tengo que decir que me ha encantado.
Je te dois une fière chandelle.
Évidemment, on ne supprime jamais rien.
Il pleut toujours le dimanche.
Je suis fatigué parce que le bébé a pleuré.
Il faut dire que c'était drôle.
Si ça ne tenait qu'à moi, je n'écrirais jamais de rapport.
Elle vient de partir.
必须夸你一句。
总不能每次都让你请客吧。
每次下雨都堵车。
要是我，就永远不写报告。
我迟到了，因为堵车。
今天真是太好了，谢谢你。
すみません、電車が遅れたせいで遅刻しました。
日曜日に限って必ず壊れるんですよね。
もちろん、何も消しません。
私なら絶対に書きません。
いつも助かっています。
今日は楽しかったので、また行きたいです。
꼭 일요일에만 고장 나더라고요.
물론 저희는 절대 지우지 않죠.
저라면 절대 안 쓰겠어요.
차가 막혀서 늦었어요, 죄송해요.
오늘 정말 최고였어요.
항상 감사합니다.
""",
}
CASES = [(kind, line) for kind, lines in STATED.items() for line in lines.strip().split("\n")]


@pytest.mark.parametrize(("kind", "sentence"), CASES)
def test_everyday_words_of_a_user_state_what_a_speaker_would_say(kind: str, sentence: str) -> None:
    assert stated(sentence, "user") == kind
