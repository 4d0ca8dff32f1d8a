"""French."""

from conspectus.ledger.wording.lists import Wording

WORDING = Wording(
    rule="""
(pourra|pourront|peut|peuvent|pouvez|peux|pouvons) ... jusqu'à # / sans l'accord / aucun (achat|document|fichier|message|envoi|changement) / aucune (dépense|modification|commande) / première consigne / dernière consigne / est interdit / reste* (en|interdit*)
systématiquement / doit / doivent / dois / devez / devons / devra / devront / au plus / au plus tard / au maximum / maximum / max # / au moins # / au minimum / pas plus (de|que|tard|d) / ne ... pas plus / plus de # ... interdit
ne (pas|jamais|plus) / il ne faut (pas|jamais|plus) / il ne faut plus / n'oublie* jamais / interdit* / interdiction / défense de / hors de question / en aucun cas / sous aucun prétexte / il ne faut / il faut (que|toujours) / obligatoire* / obligatoirement / impérativement / impératif / strictement
plafond / plafonné* / limite (est|de|à|fixée|reste) / limité* à / la limite / budget (est|de|reste|pour|maximum) / délai / date limite / échéance / à rendre / avant le / dernier délai
désormais / dorénavant / à partir (de maintenant|d'aujourd'hui|de) / à l'avenir / jusqu'à nouvel ordre / par défaut / en règle générale / la règle
uniquement / seulement / exclusivement / rien que / sans (mon|notre|mon accord|autorisation|accord|me|demander|validation|prévenir) / demande*-moi (avant|d'abord) / consulte*-moi / veille* à / veillez à / assure*-toi / assurez-vous / fais* en sorte / faites en sorte
^ ne / ^ n'* / ^ aucun / ^ aucune / ^ pas de / ^ pas d' / ^ évite* / ^ évitez / merci de ne / merci de toujours / prière de / respecte* / respectez / ne dépasse* / dépasser / ne pas dépasser / à ne pas
(réponds|répondez|répondre|écris|écrivez|parle|parlez|réponses) ... en (français|anglais|allemand|espagnol|italien|chinois|japonais|coréen)
chaque fois / à chaque / dans tous les / dans toutes les / s'appelle / s'écrit / se nomme / reste* (sous|en dessous|inférieur*) / moins de # / laisse* ... tranquille
""",
    not_rule="""
ne m'en / ne me / ne t'en / ne vous en / ne nous en / ne m' / ne parlons
(on|je|tu|il|elle|ça|nous|c'est|y) ... toujours / toujours est / toujours (moi|lui|toi|elle|dimanche|lundi) / on ne sait / il ne fallait
je dois (dire|avouer|reconnaître|admettre|y|partir|filer|vous) / dois-je / doit-on / jamais (vu|entendu|pensé|su|compris|été|eu|rencontré) / (j'ai|je n'ai|n'ai|il n'a|n'a|on n'a|n'avais|n'avait|n'avons|n'ont) ... jamais / on ne sait jamais / jamais deux sans trois / mieux vaut tard que jamais / comme toujours / pas toujours / presque toujours / toujours (pas|aussi|un plaisir|autant|en cours|là|été) / comme jamais / plus que jamais / il doit (être|avoir|y) / ça doit / cela doit (être|venir) / elle doit (être|avoir) / doit (être content|venir de) / si jamais
ne (t'inquiète*|vous inquiétez|t'en fais|vous en faites|vous dérangez|bouge*|quitte*|sais|vois|comprends|pense|crois) / n'hésite* / n'hésitez / n'est-ce / pas de (souci|soucis|problème|panique|quoi|chance|nouvelles) / aucun (problème|souci|doute) / aucune (idée|importance) / il ne faut pas s'inquiéter / non seulement / si seulement / devrait / pas mal / seulement (si vous voulez|voilà) / n'empêche / n'importe / ne serait / ne (fait|va) / n'* pas (besoin|encore|sûr)
""",
    often="""
toujours / jamais
""",
    order="""
doit / doivent / faut / merci / prière / veuillez / ^ ne / ^ n'* / ^ jamais (de|d'|sans) / ^ toujours (vérifier|demander|utiliser|mettre|écrire|lancer|faire|prévenir|répondre|garder|passer) / ^ * toujours / ^ * jamais / s'il / consigne / règle
""",
    unreal="""
si j'avais / si on avait / si nous avions / si seulement / si je pouvais / si on pouvait / j'aurais / on aurait / peut-être / sans doute / probablement / pas encore décidé / pas décidé / rien décidé / paraît / pourvu / aimerais bien pouvoir
""",
    mixed="""
confondre / confondez / confonds / mélange* / ne pas confondre / à ne pas confondre / inverse*
""",
    reason="""
parce que / car / c'est que / la raison / puisque
""",
    preference="""
préfèr* / préfér* / de préférence / plutôt que / j'aime* (mieux|bien|les|le|que|quand) / nous aimons / j'aimerais (mieux|autant|que) / idéalement / si possible / dans la mesure du possible / de mon goût / favori* / me convient mieux / m'arrange / appelle*-moi / appelez-moi / je (n'aime|déteste) / au lieu de / vaut mieux / fais court / faites court
j'aime* mieux / je trouve* ... plus (clair|claire|simple|pratique|agréable|lisible) / me plaît plus / me plaît mieux / me plaisent plus / je suis plutôt / ça m'arrange / m'arrangerait / c'est mieux pour moi / je m'y retrouve mieux / plus pratique pour moi / aime autant / je les aime / je l'aime (court|courte|chaud|froid|simple) / me va mieux / me vont mieux / ma préférence
""",
    not_preference="si tu préfères / si vous préférez / comme tu préfères / comme vous préférez / plutôt (bien|bon|sympa|pas|content*|contente|rare) / j'aimerais (savoir|comprendre|voir|bien savoir)",
    decision="""
va pour / se rabat* / on a choisi / on se rabat / on reste sur / on laisse tomber / finalement (on|nous|ce) / tout compte fait
décid* / décision / avons choisi / ai choisi / a choisi / on (prend|garde|part|passe|utilise|retient|reste|choisit|abandonne) / nous (prenons|gardons|utilisons|retenons|passons|partons|choisissons|abandonnons) / retenu* / convenu* / tranché / opté pour / optons pour / finalement on / d'accord pour / c'est acté / acté
cause (est|était|racine|du|de) / la cause / causé* par / provoqué* par / coupable / s'est avéré / il s'avère / provenait / le problème (vient|venait|était|est) / l'origine du
""",
    not_decision="pas encore décidé / pas décidé / rien décidé / à décider / il faut décider / on part de / n'arrive pas à décider / me décider / nous décider / décidément / la raison pour laquelle je",
    task="""
faudrait encore / faut encore / il faut encore / il manque encore / reste à
à faire / reste à / restent à / il reste à / encore à faire / reste encore / prochaine étape / prochaines étapes / étape suivante / à terminer / en attente / rappelle-moi / rappelez-moi / n'oublie pas / n'oubliez pas / pense à / pensez à / il faudra / il faudrait / faudra encore / points ouverts / pas encore (fait|terminé|commencé)
(peux-tu|pouvez-vous|pourrais-tu|pourriez-vous) (aussi|également|s'il) / merci (d'|de) ... (avant|d'ici|pour) / d'ici (lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|demain|la fin|le #|#) / ensuite il / veuillez / ^ (ajoute|ajoutez|prépare|préparez|envoie|envoyez|réserve|réservez|rédige|rédigez|mets à jour|mettez à jour) ... (avant|d'ici)
il reste / reste (la|le|les|encore|donc|juste|plus) / il (me|nous) reste / il manque / manque encore / (je|on|nous) (n'ai|n'a|n'avons|n'*) ... pas encore / (n'a|n'ont|n'est|ne sont|n'ai|n'avons) pas encore / toujours pas (fait|envoyé|reçu|réservé|commandé|payé|écrit|été|appelé) / pas encore (été|envoyé|payé|réservé|commandé|écrit|signé|appelé|prévenu|reçu) / reste* ... à * / encore * à / il y a encore / ne pas oublier / (ne) faut pas oublier / faut (que je|qu'on|que nous) (pense*|n'oublie*) / il faut encore / à (payer|commander|réserver|écrire|appeler|signer|envoyer|vérifier|corriger|imprimer|acheter) encore / sur la liste
""",
    done="""
terminé* / fini* / achevé* / c'est fait / est fait / est faite / sont faits / sont faites / fait : / résolu* / corrigé* / réglé* / livré* / bouclé* / envoyé* / réservé* / rédigé* / ajouté* / mis à jour / mise à jour faite / créé* / publié* / effectué* / est prêt* / sont prêts / est en place / renouvelé* / commandé* / traduit* / annulé* / vérifié* / déployé*
(j'ai|on a|nous avons|a|ont|il a|elle a) (coupé|acheté|payé|appelé|posté|changé|remis|rendu|lavé|nettoyé|peint|signé|imprimé|récupéré|déplacé|renommé|prévenu|planté|arrosé|remplacé|mis|supprimé|enlevé|ramené|rangé|accroché|demandé|trouvé|fait|écrit|pris) / (est|sont) (payé*|signé*|parti*|prêt*|imprimé*|remplacé*|réparé*|rendu*|là)
""",
    not_done="""
pas (encore|terminé*|fini*|résolu*|fait) / une fois / dès que / quand ... (terminé|fini|fait) / presque (fini|terminé) / à moitié / doit être / doivent être / sera / seront / à terminer / avant d'être / reste à
""",
    change="""
se rabat* / on change / à présent / refuse / ne peut (pas|plus) / mal écrit / trompée / trompé* / déménagé* / a tout rangé / se trouve (à présent|maintenant|désormais) / s'assouplit / plus souple / gentille sur / tant pis
désormais / dorénavant / à partir (de maintenant|d'aujourd'hui) / maintenant / à présent / au lieu (de|du) / plutôt que / ne ... plus / n'* plus / chang* / modifi* / augment* / relev* / baiss* / réduit* / réduire / abaiss* / pass* (à|de) / passe / report* / décal* / avanc* / repouss* / prolong* / déplac* / remplac* / corrig* / correction / rectif* / nouveau / nouvelle / nouvel / finalement / en fait / pas ... mais / non pas / je voulais dire / erreur / me suis trompé* / faute de frappe / renommé* / mise à jour / mettons / port* à / monte / monter / doubl* / oublie* / et non / tout compte fait / réflexion faite
""",
    not_change="de nouveau / à nouveau / quoi de neuf / pas plus / jusqu'à maintenant / jusqu'à présent / pour l'instant / ne changez / ne change pas / ne jamais modifier / ne modifie* / ne pas modifier / en passant / au passage",
    because="""
parce que / parce qu'* / vu que / vu qu'* / puisque / puisqu'* / ^ car (le|la|les|il|elle|on|nous|je|j'*|c'*|ce|cela|ça|l'*|un|une|mon|ma|mes|notre|nos|tout|toute|tous|toutes|personne|son|sa|ses|ils|elles|d'*|à|en|aucun|aucune|deux|trois|sans|celui|celle|ceux) / étant donné / à cause / en raison / faute de / du fait / ^ comme (le|la|les|il|elle|on|c'est|nous|l'* |tout|ça|ils|elles|je|mon|ma|mes|notre|nos|personne) / grâce à / grâce au / sinon / par manque / suite à / vient (de|du|d'*) / venait (de|du|d'*) / viennent (de|du|des)
""",
    cause="""
(c'est|c'était|est|était|sont|étaient) (dû|due|dus|dues) / (vient|venait) (de ce|du fait|de là|d'un|d'une) / provient / proviennent / ce n'est pas (la|le|les|à cause|parce|un|une|l'*) ... (c'est|mais) / (c'est|c'était) (la faute|à cause|parce|l'* qui|le * qui|la * qui) / la faute (à|au|aux|de|du) / c'est pour (ça|cela) / d'où (la|le|les) / la raison (est|en est|de|du) / l'origine (est|de|du) / s'explique par / tient à (ce|un|une)
""",
    trouble="""
échou* / échec / plante / plantait / planté / panne / erreur / erreurs / bogue / bogué / bloque / bloqué / bloquée / bloqués / bloquait / lent / lente / lents / lentes / rame / ramait / fuit / fuyait / fuite / casse / cassé / cassée / cassés / coupe / coupé / coupée / coupait / saute / sautait / sauté / tombe / tombait / tombé / tombée / disjoncte / disjoncté / perd / perdu / perdue / perdus / vide / vides / double / doublé / doublon / doublons / manque / manquait / manquent / manquaient / retard / retardé / faux / fausse / fausses / rejette / rejeté / rejetée / surchauffe / coince / coincé / coincée / grince / trop / problème / problèmes / abîmé / arrêté / arrête / arrêtée / s'arrête / disparu / disparaît / disparaissent / moisi / rouille / gèle / gelé / incorrect / illisible / crevé / bruit / sent mauvais / clignote / siffle / déborde / bouché / bouchée / en double
(ne|n'*|s'*) ... (marche|marchait|fonctionne|fonctionnait|démarre|démarrait|charge|chargeait|ouvre|ouvrait|imprime|chauffe|chauffait|répond|répondait|passe|passait|ferme|part|partait|partent|allume|arrive|arrivait|arrivaient|correspond|correspondent|tient|tenait|reçoit|reçoivent|affiche|trouve|tourne|sort|sonne|monte|pousse|poussent|envoie|enregistre|peut) (pas|plus|jamais|rien)
à l'envers / tordu / tordue / périmé / périmée / desserré / desserrée / à vide / surchargé / débranché / débranchée
""",
    choice="""
(je|on|nous|j'*) (retiens|retient|retenons|prends|prend|prenons|garde|gardons|choisis|choisit|choisissons|laisse|laissons|reste|restons|pars|part|partons|opte|optons|achète|achetons|loue|louons|réserve|réservons|mets|met|mettons|tiens|tient|tenons|conserve|conservons|abandonne|abandonnons|renonce|renonçons|commande|commandons|remplace|répare|reporte|annule|imprime|plante|joue|passe par|passe|vais prendre|va prendre|vais garder|va garder)
(ce sera|ça sera|ce serait|c'est donc|ce seront) / m'en tiens / s'en tient / nous en tenons / je (le|la|les) (garde|laisse|prends|retiens) / on (le|la|les|y|en) (garde|laisse|prend|retient|reste) / on fait / je fais / on va (à|au|chez|avec|en|faire) / on se passe de
""",
    not_cause="""
(je suis|j'étais|je ris|je pleure|je demande|je viens|je t'écris|j'écris|je vous écris|j'ai ri|j'aime|j'adore|suis) ... (parce|car|vu|puisque|à cause) / vient (de me|de nous|de te|de lui|de loin|de finir|de partir|de rentrer|de passer|d'arriver|d'appeler|de recevoir|de voir|de dire) / venait de (me|nous|partir|finir|rentrer) / grâce à (toi|vous) / pas étonnant
""",
    duty="""
il faut / il faudrait / faudrait / faut / (on|nous|je) (doit|devons|dois) / il va falloir / faudra / (j'ai|on a|nous avons) besoin de / on devrait / il me faut / il nous faut
""",
    not_duty="""
il faut (dire|voir|avouer|reconnaître|admettre|croire|bien|être|vivre|savoir|rire) / il faut que je (te|vous|file|parte|dise|y) / je (te|vous|lui|leur) dois / je dois (dire|avouer|reconnaître|admettre|y|partir|filer|vous|te) / besoin (d'un café|de vacances|de dormir|d'aide|de repos|d'air) / faut (dire|voir|croire|avouer|pas|bien) / on doit (être|avoir|se voir) / nous devons (être|avoir) / ne faut (pas|plus|jamais) / n'ai (pas|plus) besoin / on devrait (se voir|être|fêter) / comme il faut
""",
    standing="""
toujours / jamais / chaque / tous / toutes / tout / toute / uniquement / seulement / au plus / au maximum / au moins / plus de / au plus tard / par défaut / désormais / dorénavant / sauf / sans / ne / n'* / pas / si / quand / limite / maximum / minimum / par (jour|personne|nuit|semaine|mois) / dès que / systématiquement / obligatoirement / impérativement / avant de / avant d'* / règle
""",
    idle="""
si ça ne tenait / s'il ne tenait / si c'était moi / si j'étais / moi je n'* / bien sûr (que|qu'on|nous|on) / évidemment (qu'on|nous|on) / une fière chandelle / (te|vous|lui|leur|m'en|nous) (dois|doit|devons|devez|doivent) / (tombe*|casse*|pleut|arrive*|marche*|finit|finissent|commence*|oublie*|perd*|gagne*|reste|sont|est|fait|font|vient|viennent|a|ont|part|partent|sonne*|lâche*) (toujours|jamais) / (n'* |ne) (tombe*|pleut|arrive*|marche*|sait|vient|finit|gagne*|est|sont|a|ont) jamais / comme on dit / typique / quelle idée / tu ne (devineras|croiras|vas) / vous ne (devinerez|croirez|allez) / n'en (parlons|fais|faites|croyez) / il ne faut pas pousser / ne (m'attends|rêve|rêvons) / ne t'en / ne pleure / on ne change pas / ça ne / ce n'est / ce ne sont / il n'y a / je n'* / j'en / on n'* / ne riez / ne ris / ne le dis / aurait (dû|fallu) / j'aurais / aurais / écrirais / ferais / ne dirais / jurerais
""",
    allow="""
(suffit|suffisent|suffiront|suffira|conviennent|convient|passent) / (peut|peuvent|pouvons|pourrait|pourrons) (dépenser|aller|durer|utiliser|inviter|monter|coûter|prendre|rester|attendre|mettre|peser|avoir) / (est|sont) (acceptable|acceptables|possible|possibles|permis|autorisé|autorisés|autorisée|autorisées|correct|corrects|suffisant|suffisants) / ça va / c'est bon / sans problème / accepte / acceptent / autorise / autorisent / nous laisse / d'accord pour
""",
    told="""
(dit|disent|pense|pensent|trouve|trouvent|confirme|confirment|estime|estiment|écrit|assure|accepte|acceptent|autorise|autorisent|annonce) / selon / d'après / a dit / ont dit / il paraît / même / désormais
""",
    grounds="""
comme ça / ainsi / pour que
""",
    not_task="""
pas encore (vu|lu|entendu|goûté|mangé|dormi|décidé|là|sûr|remis|tout|froid|tard) / il reste (du gâteau|du café|du vin|calme|à la maison|à voir)
""",
    heading_rule="règles / règle / consignes / contraintes / limites / exigences / conditions / principes / conventions / directives / règles à suivre / règlement / impératifs",
    heading_task="à faire / reste à faire / tâches / tâches ouvertes / prochaines étapes / en attente / todo / points ouverts / en cours",
    heading_done="fait / terminé / fini / déjà fait",
    filler="""
parce car puisque choisi choisir décidé préfère préférer aime cela ça chaque autre autres même mêmes enfin bon alors soit ni
le la les l un une des de du d et ou mais pour avec par sur sous dans en au aux à ce cette ces cet il elle on nous vous ils elles je tu me te se moi toi mon ma mes notre nos votre vos ton ta tes son sa ses leur que qui quoi dont où ne pas plus jamais toujours
est sont était étaient être sera seront a ont avait avoir doit doivent faut dois devez peut peuvent très bien aussi encore déjà désormais dorénavant maintenant nouveau nouvelle nouvel finalement fait si non oui merci svp plaît plait lieu plutôt maximum max tard avant après jusqu
change changer changé changement correction corrige passe passer passons augmenter augmente augmentons reporté reportée porter porte voulais dire erreur ancien ancienne au plus c n s j qu t y tout tous toute toutes partir donc alors comme
""",
    alike="""
plafond limite budget maximum dépense dépenser dépenses montant coût coûter dépasser
délai échéance date rendre livraison livrer remise limite
réponds répondez répondre réponse réponses écris écrivez parle langue
appelle nom nomme écrit
réunion rendez-vous séance appel
tentatives essais tentative
personnes invités participants gens convives
dossier répertoire
courriel mail e-mail email
""",
    months="""
janvier janv
février févr
mars
avril avr
mai
juin
juillet juil
août
septembre sept
octobre oct
novembre nov
décembre déc
""",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    languages="français anglais allemand espagnol italien chinois japonais coréen portugais russe néerlandais",
    units="""
secondes seconde minutes minute heures heure jours jour nuits nuit nuitées semaines semaine mois ans an années année personnes personne invités participants utilisateurs clients places pages page lignes ligne mots caractères colonnes pièces exemplaires fichiers billets chambres étapes points requêtes messages
fois tentatives euros euro dollars francs pour-cent degrés mètres kilomètres litres grammes kilos tonnes palettes bouteilles chaises tables colis salariés cartons unités boîtes volts watts ampères lux lumens décibels hertz calories portions tours buts joueurs équipes verres tasses cuillères œufs tranches hectares étages centimètres millimètres appels assiettes chapitres photos diapositives courriels élèves adhérents arbres sièges affiches créneaux chansons morceaux exposants
""",
)
