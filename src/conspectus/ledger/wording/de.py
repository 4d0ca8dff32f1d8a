"""German."""

from conspectus.ledger.wording.lists import Wording

WORDING = Wording(
    rule="""
(darf|dürfen|können|lässt) ... bis ... # / läss* ... # ... durchgehen / (soll|sollen) ... (spätestens|bis)
nie ohne / muss / müssen / musst / müsst / müsste nicht / höchstens / maximal / mindestens # / spätestens / frühestens / allerspätestens
nicht (mehr|länger|später|weniger|vor|über|unter) ... als / nicht mehr als / nicht länger als / nicht später als / darf / dürfen / darfst / dürft / dürfte nicht
auf keinen fall / keinesfalls / unter keinen umständen / unbedingt / zwingend / verboten / untersagt / nicht erlaubt / nicht gestattet / tabu / verpflichtend / vorgeschrieben / pflicht
obergrenze / untergrenze / grenze (liegt|ist|von|bei) / limit / limit (ist|liegt|von|bei) / deckel / budget (ist|liegt|beträgt|von|für) / frist / abgabefrist / stichtag / deadline / abgabetermin / fällig
ab (sofort|jetzt|heute) / von (jetzt|nun) an / künftig / in zukunft / zukünftig / bis auf weiteres / grundsätzlich / ausnahmslos / generell
nur (mit|nach|über|in|wenn|im|noch|zwischen|auf|von|für|per) / ausschließlich / ^ kein / ^ keine / ^ keinen / bitte (kein|keine|keinen|nie|niemals|nicht|nur|immer|stets)
^ nicht / ohne (meine|unsere|meine ausdrückliche|rückfrage|freigabe|ausdrückliche|vorherige|schriftliche|absprache|genehmigung|zustimmung) / soll (immer|nie|niemals|nur|nicht) / sollen (immer|nie|niemals|nur|nicht) / sollte (immer|nie|niemals|nur|nicht)
achte darauf / achten sie darauf / stelle sicher / stell sicher / stellen sie sicher / sicherstellen / sorge dafür / sorgen sie dafür
frag (mich|erst|vorher|immer) / fragen sie (mich|erst|vorher|immer) / erst (fragen|nachfragen) / vorher (fragen|nachfragen) / regel (ist|lautet)
# (Uhr) nicht / darüber hinaus nicht / überschreiten / nicht überschreiten / unterschreiten / innerhalb von # / binnen # / liegt bei (maximal|höchstens) / bleibt (unter|bei) / bleiben (unter|bei)
(antworte|antworten sie|schreib|schreibe|schreiben sie|sprich|antworten|antwortet) ... auf (Deutsch|Englisch|Französisch|Spanisch|Italienisch|Chinesisch|Japanisch|Koreanisch)
jedes mal / in allen / in jedem / bei jedem / bei jeder / heißt / schreibt sich / bleibt gesperrt / lass ... in ruhe / lassen sie ... in ruhe / finger weg / vermeide / vermeiden sie
""",
    not_rule="""
muss ja nicht / müssen ja nicht / (das|die|er|es|sie) (muss|müssen) ... (sein|haben) / (wir|ich) (haben|hatten|waren|habe|hatte|war) / immer recht / immer noch / ich muss / muss ich / ich darf / nie (mehr|wieder) so
ich muss (sagen|zugeben|gestehen|los|gehen|leider|mich|noch|erst) / muss ich (sagen|zugeben|gestehen|los|leider|noch) / muss nicht / müssen nicht / musst nicht / man muss sagen / wie immer / immer noch / nicht immer / fast immer / immer wieder / immer mehr / immer (besser|schlimmer|größer|weniger|näher) / schon immer / immer schon / für immer
nie (gesehen|gehört|gewesen|gedacht|erlebt|verstanden|gewusst) / noch nie / (ich|er|sie|es|wir) (habe|hat|hatte|haben|war|hatten|bin) ... nie / fast nie / nie wieder so / wie nie zuvor / was auch immer / wer auch immer / wo auch immer / wie auch immer / wann immer sie / immerhin
keine (ahnung|sorge|sorgen|eile|frage|fragen|angst|zeit|lust|probleme|ursache|umstände|rolle|wunder) / kein (problem|thema|wunder|ding|stress|grund|zweifel) / keinen (stress|grund|zweifel)
darf ich / dürfte ich / darf man fragen / nur (so|mal|kurz|noch kurz|eben|zur info) / nicht (schlecht|schlimm|so|wahr|nur|wirklich|ganz|dass|nötig|der rede) / das muss / es muss ... sein / muss wohl / musste / dürfte / in allen ehren / wer gilt / es gilt noch zu
das heißt / heißt das / was heißt / es heißt
""",
    often="""
immer / nie / niemals / stets / jederzeit
""",
    order="""
muss / müssen / darf / dürfen / soll / sollen / sollte / sollten / bitte / ^ nie / ^ niemals / ^ immer / ^ * (immer|nie|niemals|stets) / ^ * sie (immer|nie|niemals|stets) / wir ... (immer|nie|niemals)
""",
    unreal="""
wär / wär's / wäre / wären / wenn ich ... hätte / hätte ich / hätten wir / wenn wir ... hätten / vielleicht / vermutlich / wahrscheinlich / wohl / noch nicht entschieden / nicht entschieden / noch offen ob / womöglich / angeblich / als ob
""",
    mixed="""
verwechsel* / auseinanderhalten / nicht verwechseln / geschwister / zum verwechseln / durcheinander
""",
    reason="""
weil / denn / der grund / nämlich
""",
    preference="""
bevorzug* / lieber / am liebsten / vorzugsweise / vorliebe / ziehe ... vor / ziehen ... vor / ich mag / wir mögen / gefällt mir ... besser / nach möglichkeit / möglichst / wenn möglich / idealerweise / wäre mir ... lieber / ist mir ... lieber / mir ist ... lieber
ich hätte gern / hätte gerne ... lieber / wünsche mir / wünschen uns / ich möchte ... lieber / gerne (kurz|knapp|in|mit|als|am) / halte dich kurz / halten sie sich kurz / nenn mich / nennen sie mich / passt mir (besser|am besten) / eher als / schätze ... mehr / statt
(mag|mögen) ... lieber / mag es (gern|gerne|kurz|lieber|knapp|ruhig|einfach|nicht) / habe* (es|sie|ihn|lieber) ... (gern|gerne|lieber|kurz|knapp) / hab's (gern|lieber|kurz|knapp) / mir ist ... lieber / sind mir lieber / ist mir lieber / sagt mir mehr zu / liegt mir mehr / kommt mir ... entgegen / freue mich (eher|mehr) / mir gefallen ... besser / gefallen mir ... besser / gefällt mir ... besser / mir wäre* ... lieber / finde ich (angenehmer|besser|schöner|übersichtlicher) / ist mir (wichtiger|angenehmer)
""",
    not_preference="lieber (herr|kollege|freund) / mein lieber / möglichst bald / so bald wie möglich / liebe (frau|kollegen|kolleginnen) / stattfinden / findet ... statt",
    decision="""
dann eben / es bleibt bei / wird es / ^ dann (nehmen|machen|bleiben|gehen) wir / am ende (nehmen|haben)
entschieden / entscheidung / entscheiden uns / beschlossen / beschluss / wir nehmen / nehmen wir / ich nehme / wir verwenden / wir bleiben bei / wir (setzen|nutzen|gehen|wechseln|steigen|buchen|wählen) / festgelegt / geeinigt / vereinbart / entscheide mich / habe mich ... für / wahl fiel
ursache / grund (war|ist|dafür|liegt) / verursacht / schuld (war|ist) / stellte sich heraus / hat sich herausgestellt / auslöser / fehlerquelle
""",
    not_decision="noch nicht entschieden / nicht entschieden / muss ... entscheiden / müssen ... entscheiden / kann mich nicht entscheiden / entscheidungshilfe / von wegen / grund zur (sorge|freude|panik) / liegt an dir / liegt an ihnen",
    task="""
(steht|stehen) noch
steht noch ... aus / stehen noch ... aus / muss noch / müssen noch / muss ich noch
noch zu tun / zu erledigen / noch offen / steht noch aus / stehen noch aus / noch ausstehend / offene (punkte|aufgaben|punkt|aufgabe) / offen (ist|sind|bleibt) / nächster schritt / nächste schritte / als nächstes / aufgabe / fehlt noch / fehlen noch
bitte (auch|noch|außerdem|zusätzlich) / bitte ... bis (montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|morgen|ende|zum|#) / erinnere mich / erinnern sie mich / nicht vergessen / vergiss nicht / vergessen sie nicht / denk daran / denken sie daran / muss noch / müssen noch / später noch / danach bitte / anschließend bitte / noch nicht (erledigt|fertig|begonnen)
(kannst du|könntest du|können sie|könnten sie) (bitte|noch|auch) / ^ bitte (schreib*|erstell*|prüf*|schick*|buch*|aktualisier*|füg*|bereit*|entwirf|such*|bestell*|ruf*|übersetz*|vergleich*|reserviere*|plan*|mach*)
(ist|sind|wurde|wurden|hat|haben|habe) ... noch (nicht|nichts|kein|keine|keinen) / noch nicht (gemacht|bestellt|gebucht|geschrieben|bezahlt|verschickt|gekauft|geprüft|angerufen|eingetragen|unterschrieben) / (fehlt|fehlen) ... noch / es fehlt noch / noch (machen|erledigen|bestellen|kaufen|buchen|schreiben|anrufen|prüfen|bezahlen|abholen|besorgen|einreichen|klären|eintragen|drucken) / (steht|stehen) ... noch aus / (gilt|bleibt) ... noch zu / bleibt zu / (ist|sind) ... noch zu / noch (klären|prüfen|erledigen) / (darf|dürfen|sollte|sollten) ... nicht vergessen / denk* an / wollte ... noch / wollten ... noch / muss ... noch / müssen ... noch / müsste ... noch / sollte ... noch / sollten ... noch / brauchen ... noch / brauche ... noch / liegt noch / liegen noch / noch offen / nur noch / kümmer* ... noch / auf der liste / dringend
""",
    done="""
erledigt / fertig / fertiggestellt / abgeschlossen / behoben / geschafft / umgesetzt / ist da / sind da / liegt (jetzt|nun|bei) / steht jetzt / gebucht / verschickt / versendet / gesendet / geschrieben / angelegt / erstellt / aktualisiert / hinzugefügt / repariert / eingereicht / bestellt / abgehakt / ausgeliefert / übersetzt / verlängert / gemacht / ist raus / sind raus / abgesagt / reserviert / veröffentlicht / eingebaut / geprüft / wurde / wurden
erledigt / hab* ... (bestellt|gekauft|bezahlt|angerufen|geschickt|umbenannt|getauscht|ausgetauscht|gewechselt|gedruckt|unterschrieben|abgeholt|gewaschen|geputzt|gestrichen|eingetragen|abgegeben|gegossen|gepflanzt|geholt|aufgeräumt|nachgereicht|ersetzt|eingerichtet|umgestellt|verlegt|überwiesen|gelöscht|angemeldet|informiert|besorgt|gebracht|ergänzt|korrigiert|geflickt|montiert|gebucht|verschickt|geschrieben|gemacht|entfernt|gekürzt|geschnitten) / (ist|sind) (bestellt|bezahlt|gekauft|gebucht|unterschrieben|umbenannt|ausgetauscht|gedruckt|weg|abgeholt|eingetragen|überwiesen|repariert|montiert)
""",
    not_done="""
nicht (erledigt|fertig|abgeschlossen|behoben) / noch nicht / sobald / wenn ... (fertig|erledigt) / bis ... fertig / fast fertig / halb fertig / muss / müssen / werden ... werden / wird ... werden / soll / sollen / bevor / zu erledigen
""",
    change="""
ab (sofort|jetzt|heute) / von (jetzt|nun) an / künftig / statt / stattdessen / anstatt / anstelle / nicht mehr / jetzt / nun / neu / neue / neuer / neues / neuen / geändert / ändert / ändern / änderung / erhöh* / anheb* / angehoben / hebe / heben / gesenkt / senken / senke / reduzier* / verschob* / verschieb* / verleg* / verläng* / verkürz* / korrektur / korrigier* / berichtig* / doch / vielmehr / sondern / gemeint / meinte / versprochen / vertippt / tippfehler / falsch / falsch geschrieben / anders laufen / umzug / großzügiger / gnädiger / strenger / lockerer / passt nicht mehr / ersetz* / wechsel* / umbenannt / aktualisier* / aufgestockt / aufstocken / runter auf / rauf auf / rauf / herabgesetzt / heraufgesetzt / rutscht / umgezogen / umziehen / vorgezogen / anders / überholt / irrtum / doppelt / verdoppel* / halbier* / mehr zeit / wird auf / steigt / sinkt / klettert / wurde ... auf / setze ... auf / setzen ... auf
""",
    not_change="nicht mehr als / jetzt schon / bis jetzt / gerade jetzt / nicht mehr lange / neu hier / neues jahr / nie ändern / nicht ändern / statt finden / und nun",
    because="""
weil / denn / wegen / aufgrund / ^ da (der|die|das|den|dem|es|er|sie|wir|ich|man|dort|sonst|uns|ein|eine|einer|unser|unsere|unserem|kein|keine|beide|nur|alle|sich|dieser|diese|dieses|sein|seine|ihr|ihre|dafür|darin|dann|im|in|am|bei|mit|zwei|drei|jemand|niemand|keiner) / liegt (am|an) / lag (am|an) / lagen (am|an) / liegen (am|an) / dadurch dass / infolge / mangels / durch (den|die|das|einen|eine|ein) / sonst / kommt (vom|von) / kam (vom|von) / nämlich / zumal / dank
""",
    cause="""
(liegt|lag) daran / (liegt|lag) ... daran dass / daran (liegt|lag) / rührt ... (von|daher|her) / rührte ... (von|daher|her) / (kommt|kam|kommen|kamen) ... (daher|davon) / nicht wegen / hängt ... damit zusammen / zurückzuführen / (schuld|Schuld) (ist|war|sind|daran|waren) / (ist|war) schuld / dahinter steckt* / verantwortlich dafür / das macht der / deshalb (ging|geht|ist|bricht|brach|fehlt|fehlte|läuft|lief|klemmt|blieb) / deswegen (ging|geht|ist|bricht|brach|fehlt|läuft|lief|klemmt) / stammt von / stammt daher / auslöser / der grund
""",
    trouble="""
fehlt / fehlen / fehlte / fehlten / fehler / fehlern / fehlerhaft / fehlgeschlagen / fehlschlägt / fehlschlug / scheiter* / gescheitert / bricht / brach / abgebrochen / gebrochen / abbricht / abbruch / abstürz* / abgestürzt / stürzt / stürzte / absturz / kaputt / defekt / falsch / falsche / falschen / falscher / langsam / langsamer / hängt / hing / klemmt / klemmte / tropft / tropfte / undicht / leckt / stockt / stoppt / stehengeblieben / stehen geblieben / steht still / verschwind* / verschwunden / verloren / leer / leere / doppelt / blockiert / störung / ausfall / ausgefallen / fällt ... aus / fiel ... aus / ausfiel / überhitzt / zu (viel|viele|wenig|wenige|spät|früh|hoch|tief|kalt|warm|heiß|lang|langsam|kurz|groß|klein|eng|laut|dunkel|hell) / verweigert / abgelehnt / abgewiesen / problem / streikt / flackert / quietscht / piept / schimmelt / verstopft / verspätet / verzögert / verzögerung / aufgehört / ging (aus|weg) / geht ... aus / rausgeflogen / springt ... raus / gerissen / reißt / rutscht / wackelt / rostet / welk* / eingegangen / abgestanden / scheppert / brummt / rauscht / versagt / versagte / unvollständig / unleserlich / verrutscht / ruckelt
(geht|ging|läuft|lief|startet|startete|klappt|klappte|funktioniert|funktionierte|druckt|druckte|öffnet|lädt|heizt|schließt|springt|kommt|kam|kommen|kamen|passt|passte|stimmt|stimmte|stimmen|reagiert|findet|findet|wird|wurde|wurden|zählt|hält|hielt|trocknet|brennt|lässt|zeigt|sendet|dreht|aktualisiert|antwortet) ... (nicht|nie|kein|keine|keinen)
nicht (geht|ging|läuft|lief|startet|startete|klappt|klappte|funktioniert|funktionierte|druckt|öffnet|lädt|heizt|schließt|anspringt|ankommt|ankam|ankommen|passt|stimmt|reagiert|gefunden|gestartet|gelaufen|angekommen|angesprungen)
verkehrt / trocken / umgedreht / verdreht / schief / verbogen / gerissen / abgelaufen / veraltet / lose / locker / verwechselt / vergessen / verpasst / erschöpft / überlastet / überfüllt / gesperrt
""",
    choice="""
(wir|ich) (nehmen|nehme|bleiben|bleibe|lassen|lasse|behalten|behalte|wählen|wähle|buchen|buche|kaufen|kaufe|setzen|setze|legen|lege|streichen|streiche|verzichten|verzichte|mieten|miete|verschieben|verschiebe|verwenden|verwende|nutzen|nutze|halten|halte|stellen|stelle|tauschen|tausche|entscheiden|entscheide|pflanzen|drucken|steigen|wechseln|sagen|spielen|starten|beginnen|bestellen|bestelle|reparieren|ersetzen)
(nehmen|bleiben|lassen|behalten|wählen|machen|buchen|kaufen|setzen|legen|streichen|verzichten|mieten|fahren|verschieben|verwenden|nutzen|halten|stellen|tauschen|pflanzen|drucken|steigen|wechseln|sagen|spielen|starten|beginnen|bestellen|ersetzen|gehen) wir
(nehme|bleibe|lasse|behalte|wähle|mache|buche|kaufe|setze|lege|streiche|verzichte|miete|verschiebe|verwende|nutze|halte|stelle|bestelle|tausche) ich
(wird|wird's|bleibt|bleibt's) es / es (wird|bleibt) / wird's / bleibt (bei|beim|dabei|so|wo|wie) / bleiben (bei|beim|dabei|so|wo|wie) / es soll ... (werden|sein) / dann (doch|eben|also)
""",
    not_cause="""
(ich|er|sie|du) (bin|war|ist|bist|komme|kam|freue|lache|weine|frage|schreibe|habe) ... (weil|da|denn|wegen) / (bin|war) ich ... (weil|da|denn|wegen) / freut mich / liegt (mir|dir|ihm|ihr|uns) / liegt am (meer|see|fluss|rand|ufer|fenster|boden|strand|herzen) / kein wunder / von wegen / nur deinetwegen / kommt von herzen
""",
    duty="""
(müssen|sollten|müssten) wir / wir (müssen|sollten|müssten) / (muss|müsste|sollte) ich / ich (muss|müsste|sollte) / (muss|müsste) man / man (muss|müsste) / jemand muss / muss jemand
""",
    not_duty="""
ich muss (sagen|zugeben|gestehen|los|gehen|leider|lachen|weg|ins|heim|nach hause|arbeiten|schlafen|mich|dir|ihnen) / muss ich (sagen|zugeben|gestehen|los|gehen|lachen|leider|mich|dir|ihnen) / müssen wir (reden|durch|los|weg|sehen|schauen) / wir müssen (reden|los|weg|durch) / (muss|müssen) ... (lachen|schmunzeln|gestehen|zugeben|sagen) / man muss (sagen|zugeben|wissen|sehen|auch|ja|schon) / muss man (sagen|zugeben|wissen|ja|schon) / muss ... (nicht|sein) / müssen ... nicht / sollten wir ... nicht / (wir|ich) sollte* ... mal (wieder|treffen) / ich sollte ... (schlafen|mehr|weniger)
man (dir|dich|ihm|ihr|euch|ihnen) lassen
""",
    standing="""
immer / nie / niemals / stets / jede / jeder / jedes / jeden / jedem / alle / allen / alles / nur / höchstens / maximal / mindestens / spätestens / nicht mehr als / grundsätzlich / ausnahmslos / generell / ab sofort / künftig / sobald / wenn / ohne / nicht / kein / keine / keinen / pro / täglich / wöchentlich / monatlich / unter / innerhalb / einhalten / jederzeit / bei jedem / regel
""",
    idle="""
wenn es nach mir ginge / ginge es nach mir / natürlich (löschen|machen|ändern|tun|schreiben|haben|sagen|gehen|lassen) wir / selbstverständlich (löschen|machen|ändern|tun) / würde ich / ich würde / ich bin dir ... schuldig / ich schulde / muss man (dir|dich|ihm|ihr|euch) ... lassen / das muss man / (gehen|geht|fällt|fallen|kommt|kommen|regnet|brechen|passiert|klingelt|streikt|macht|machen|vergisst|vergessen|sind|ist|hat|haben|spinnen|spinnt|geben|gibt|bleibt|findet|weiß|wissen|klappt|fehlt|gehört|wird|werden) ... (immer|nie|niemals) / typisch / wie man sagt / man soll den tag / ende gut / das wird schon / hand aufs herz / das hätte / müsste es ... geben / müsste man / darf nicht wahr sein / was man nicht alles / du kannst nicht glauben / muss toll / muss schön / muss herrlich / (muss|müssen) ... (gewesen|gehabt) sein / muss ... (toll|schön|anstrengend|spannend|lustig) / das darf doch / hut ab / wehe
""",
    allow="""
(reichen|reicht|genügen|genügt|genügten|gehen in ordnung|geht in ordnung|sind in ordnung|ist in ordnung|sind okay|ist okay|sind ok|ist ok|sind erlaubt|ist erlaubt|sind drin|wären okay|gehen klar) / (dürfen|darf|dürfte|können|kann|könnten) ... (ausgeben|kosten|dauern|gehen|haben|einladen|mitbringen|bleiben|nehmen|sein|brauchen|warten|laufen|verbrauchen) / in ordnung / erlaubt / gestattet / genehmigt / bewilligt / vertretbar
""",
    told="""
(sagt|sagte|sagen|sagten|meint|meinte|meinen|findet|finden|schreibt|schrieb|bestätigt|bestätigte|erlaubt|genehmigt|versichert|hat gesagt|haben gesagt|ruft an|rief an) / laut / zufolge / angerufen / gesagt / gemeint / geschrieben / inzwischen / sogar / mittlerweile
""",
    grounds="""
damit / sonst / so (haben|ist|sind|bleibt|sparen|können)
""",
    not_task="""
noch nicht (gesehen|gehört|gewusst|erlebt|so|ganz|kalt|warm|hell|dunkel|spät|alt|da|mal|entschieden) / noch nichts (gegessen|gehört|gesehen|getrunken|passiert) / noch kein (problem|grund|kaffee) / muss noch lachen / noch nicht einmal
""",
    heading_rule="regeln / regel / vorgaben / grundregeln / spielregeln / rahmenbedingungen / bedingungen / anforderungen / grenzen / limits / leitplanken / richtlinien / vorschriften / es gilt / folgendes gilt / hausregeln / konventionen",
    heading_task="todo / todos / to-do / aufgaben / offen / offene punkte / offene aufgaben / noch zu tun / noch offen / nächste schritte / zu erledigen / ausstehend",
    heading_done="erledigt / fertig / abgeschlossen / schon erledigt / bereits erledigt",
    filler="""
weil denn entschieden entscheiden entscheidung lieber halt eben eigentlich ganz alle alles jede jeder jedes ab zuerst damit dafür ohnehin natürlich gern gerne
der die das den dem des ein eine einen einem einer eines und oder aber für mit von vom zu zum zur im in am an auf aus bei bis nach vor über unter durch um als wie dass nicht kein keine keinen mehr nur noch auch schon
ist sind war waren wird werden wurde wurden sein hat haben hatte darf dürfen muss müssen soll sollen kann können ich du er sie es wir ihr mich dich uns euch mir dir ihnen mein meine unser unsere dein deine man
bitte immer nie niemals stets jetzt nun neu neue neuer neues neuen doch statt stattdessen ab sofort heute künftig höchstens maximal spätestens mindestens gilt gelten bleibt also so sich wenn dann da hier diese dieser dieses
geändert ändern korrektur sondern gemeint meinte meine falsch erhöhen erhöhe erhöht erhöhen verschoben verschiebt verschieben bisher vorher früher alte alten alter altes hoch runter sagte gesagt liegt liegen lieber ja nein entschuldigung sorry leider ok übrigens
""",
    alike="""
obergrenze limit budget grenze deckel maximum höchstbetrag kosten kostet ausgeben ausgaben betrag überschreiten höchstens maximal
frist deadline abgabe abgabetermin abgabefrist termin fällig stichtag liefertermin abgeben einreichen
antworte antworten antwort antworten schreib schreibe sprich sprache korrespondenz
heißt name genannt schreibt nachname
besprechung meeting sitzung termin treffen
wiederholungen versuche versuch
gäste personen teilnehmer leute gast
ordner verzeichnis
mail e-mail email
zeitlimit timeout zeitüberschreitung
""",
    months="""
Januar Jänner Jan
Februar Feb
März
April Apr
Mai
Juni Jun
Juli Jul
August Aug
September Sept Sep
Oktober Okt
November Nov
Dezember Dez
""",
    weekdays="Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonnabend Sonntag",
    languages="Deutsch Englisch Französisch Spanisch Italienisch Chinesisch Japanisch Koreanisch Portugiesisch Russisch Niederländisch Polnisch",
    units="""
Sekunden Sekunde Minuten Minute Stunden Stunde Std Tage Tagen Tag Nächte Nächten Nacht Wochen Woche Monate Monaten Monat Jahre Jahren Jahr Personen Person Gäste Gästen Teilnehmer Teilnehmern Nutzer Kunden Plätze Seiten Seite Zeilen Zeile Wörter Wörtern Zeichen Spalten
Stück Stücke Dateien Exemplare Tickets Zimmer Schritte Punkte Anfragen Nachrichten Mal Versuche Euro Dollar Franken Prozent Grad Meter Kilometer Liter Gramm Kilo Kilogramm Tonnen Paletten Flaschen Stühle Tische Pakete Mitarbeiter Quadratmeter Kisten Arbeitstage Werktage Uhr Volt Watt Ampere Lux Lumen Dezibel Hertz Kalorien Portionen Runden Tore Spieler Mannschaften Karten Gläser Tassen Löffel Eier Scheiben Hektar Etagen Stockwerke Meter Zentimeter Millimeter Zoll Schichten Anrufe Teller Becher Hefte Bände Ordner Folien Kapitel Bilder Fotos Sätze Takte Stimmen Proben Mails Anhänge Kunden Bäume Pflanzen Felder Sitzungen Sitze Plakate
""",
)
