"""Text search: terms and scores in every language, phrases and negations, indexes and their errors, `$meta`."""
from .data import D, L

LINES = {
    "english": ["The quick brown foxes were jumping over lazy dogs", "Running, jumped and swimming: three ways of moving quickly", "It's John's o'clock habit, don't you think?", "Databases store documents; indexing documents speeds searches", "Generously giving relational nations internationalization", "A fox. A fox! FOX, fox-hound and co-operation"],
    "german": ["Die schnellen Füchse springen über faule Hunde", "Wir haben gestern die Häuser unserer Nachbarn gesehen", "Straßenbahnen und Geschwindigkeitsbegrenzungen ärgern Autofahrer", "Das Mädchen liest ein schönes Buch über Vögel", "Größere Städte wachsen schneller als kleinere Dörfer"],
    "french": ["Les renards rapides sautaient par-dessus des chiens paresseux", "L'été dernier, nous avons mangé des crêpes à la plage", "Les chevaux nationaux couraient généralement très vite", "Qu'il soit heureux aujourd'hui avec ses élèves préférés", "Une œuvre d'art naïve et ambiguë du siècle passé"],
    "spanish": ["Los zorros rápidos saltaban sobre perros perezosos", "Mañana los niños estarán corriendo por las montañas", "¿Dónde está la canción que cantábamos juntos?", "Nosotros habíamos comprado manzanas rojas y peras verdes", "El corazón español late rápidamente, ¡qué emoción!"],
    "italian": ["Le volpi veloci saltavano sopra i cani pigri", "Domani mangeremo la pizza più buona della città", "Gli studenti dell'università leggevano libri interessanti", "Perché non andiamo al mare con gli amici?", "L'uomo abbandonato cercava una possibilità migliore"],
    "portuguese": ["As raposas rápidas pulavam sobre cães preguiçosos", "Amanhã as crianças estarão correndo nas montanhas", "Não há solução para os problemas nacionais", "Nós tínhamos comprado maçãs vermelhas e pães", "O coração português bate rapidamente"],
    "dutch": ["De snelle vossen sprongen over luie honden", "Morgen gaan de kinderen naar de mooiste bergen", "Wij hebben lekkere appels en peren gekocht", "Groene huizen staan langs verschillende grachten", "Geloofwaardigheid en verantwoordelijkheden zijn belangrijk"],
    "danish": ["De hurtige ræve sprang over dovne hunde", "Børnene løber gennem de grønne skove", "Vi har købt æbler og pærer på markedet", "Skibene sejlede langsomt over havet", "Frihed og lighed for alle mennesker"],
    "norwegian": ["De raske revene hoppet over late hunder", "Barna løper gjennom de grønne skogene", "Vi har kjøpt epler og pærer på markedet", "Skipene seilte langsomt over havet", "Friheten og likheten gjelder alle mennesker"],
    "swedish": ["De snabba rävarna hoppade över lata hundar", "Barnen springer genom de gröna skogarna", "Vi har köpt äpplen och päron på marknaden", "Skeppen seglade långsamt över havet", "Friheten gäller för alla människor"],
    "finnish": ["Nopeat ketut hyppäsivät laiskojen koirien yli", "Lapset juoksevat vihreiden metsien läpi", "Me ostimme omenoita ja päärynöitä torilta", "Laivat purjehtivat hitaasti meren poikki", "Vapaus kuuluu kaikille ihmisille"],
    "hungarian": ["A gyors rókák átugrottak a lusta kutyákon", "A gyerekek zöld erdőkben szaladnak", "Almákat és körtéket vettünk a piacon", "A hajók lassan vitorláztak a tengeren", "A szabadság minden embert megillet"],
    "romanian": ["Vulpile rapide săreau peste câinii leneși", "Copiii aleargă prin pădurile verzi", "Am cumpărat mere și pere din piață", "Corăbiile navigau încet pe mare", "Libertatea este pentru toți oamenii"],
    "russian": ["Быстрые лисы прыгали через ленивых собак", "Дети бегают по зелёным лесам", "Мы купили яблоки и груши на рынке", "Корабли медленно плыли по морю", "Свобода принадлежит всем людям"],
    "turkish": ["Hızlı tilkiler tembel köpeklerin üzerinden atladı", "Çocuklar yeşil ormanlarda koşuyorlar", "Pazardan elma ve armut satın aldık", "Gemiler denizde yavaşça ilerliyordu", "IŞIK ve ısı İstanbul'da kitaplarımızdan"],
    "none": ["The quick foxes", "STRASSE Straße ÉTÉ été ete", "naïve café Ångström ΑΒΓ σοφός ς", "a_b a+b a&b c++ 3.14 1,000 x=y", "well-known e-mail user@example.com don't"],
}


def texts():
    out, i = [], 0
    for language, lines in LINES.items():
        for n, line in enumerate(lines):
            out.append({"_id": i, "p": n % 3, "language": language, "title": " ".join(line.split()[:3]), "body": line, "n": n, "tags": line.split()[-2:], "sub": {"note": lines[(n + 1) % len(lines)]}})
            i += 1
    return out


def plain_texts():
    """Without languages; arrays, sub-documents and other types among the text."""
    base = [d["body"] for d in texts() if d["language"] == "english"]
    out = []
    for i in range(40):
        out.append({"_id": i, "a": base[i % 6] if i % 5 else [base[i % 6], base[(i + 1) % 6]], "b": {"c": base[(i * 7) % 6].lower(), "d": [{"e": base[(i + 2) % 6]}]}, "k": i % 4, "s": i % 7 if i % 9 else None, "x": [5, "fox dog", ["cat fox"], {"y": "running dogs"}][i % 4]})
    out += [{"_id": 40, "a": "fox"}, {"_id": 41, "a": ""}, {"_id": 42}, {"_id": 43, "a": 5, "b": 6}, {"_id": 44, "a": "fox fox fox fox fox dog dog"}, {"_id": 45, "a": "FOX", "k": 1}, {"_id": 46, "a": "fóx fox", "k": 2}]
    return out


SETS = {"texts": texts, "plaintexts": plain_texts}
INDEXES = {
    "texts_all": ("texts", {"title": "text", "body": "text", "sub.note": "text"}, {"weights": {"title": 10, "body": 3}}),
    "texts_wild": ("texts", {"$**": "text"}, {"default_language": "none"}),
    "texts_pre": ("texts", {"p": 1, "body": "text", "n": -1}, {"default_language": "spanish"}),
    "plaintexts_a": ("plaintexts", {"a": "text"}, {}),
    "plaintexts_abc": ("plaintexts", {"a": "text", "b.c": "text", "b.d.e": "text"}, {"weights": {"b.c": 5}}),
    "plaintexts_wild": ("plaintexts", {"$**": "text"}, {"weights": {"b.c": 7, "z": 4}}),
    "plaintexts_pre": ("plaintexts", {"k": 1, "a": "text", "s": 1}, {}),
    "plaintexts_part": ("plaintexts", {"a": "text"}, {"partialFilterExpression": {"k": {"$gte": 2}}}),
}
SCORE = {"score": {"$meta": "textScore"}}
BEST = {"score": {"$meta": "textScore"}, "_id": 1}


def text(search, **kw):
    return {"$text": {"$search": search, **{"$" + k: v for k, v in kw.items()}}}


def find(setup, f, **kw):
    return {"setup": setup, "cmd": {"find": setup, "filter": f, "projection": {"_id": 1, **SCORE}, "sort": BEST, **kw}}


def words(rnd):
    """Every word of every line, searched for in its language."""
    for language, lines in LINES.items():
        all_words = sorted({w for line in lines for w in line.replace('"', "").split()})
        for w in all_words:
            yield find(rnd.choice(["texts_all", "texts_wild"]), text(w, language=language))
        for _ in range(24):
            some = rnd.sample(all_words, 3)
            yield find("texts_all", text(" ".join(some), language=language))
            line = rnd.choice(lines).split()
            at = rnd.randrange(len(line) - 1)
            yield find("texts_all", text(f'{some[0]} "{line[at]} {line[at + 1]}"', language=language))
            yield find("texts_wild", text(f"{some[0]} {some[1]} -{some[2]}", language=language))


def searches(rnd):
    pool = ["fox", "dog", "foxes", "dogs", "running", "jumped", "lazy", "quick", "document", "index", "Fox", "FOX", "the", "it's", "don't", "o'clock", "cat", "database", "co-operation", "hound", "fóx", "way"]
    phrases = ["quick brown", "lazy dogs", "fox", "FOX", "a fox", "brown foxes were", "ox", "", "documents; index", "fox-hound", "zzz", "John's o"]
    sets = ["plaintexts_a", "plaintexts_abc", "plaintexts_wild"]
    for _ in range(560):
        parts = rnd.sample(pool, rnd.randrange(1, 4))
        parts = [("-" + p if rnd.random() < .2 else p) for p in parts]
        for _ in range(rnd.choice([0, 0, 0, 1, 1, 2])):
            parts.append(("-" if rnd.random() < .3 else "") + '"' + rnd.choice(phrases) + '"')
        rnd.shuffle(parts)
        options = {}
        if rnd.random() < .3:
            options["caseSensitive"] = rnd.random() < .8
        if rnd.random() < .3:
            options["diacriticSensitive"] = rnd.random() < .8
        if rnd.random() < .2:
            options["language"] = rnd.choice(["none", "en", "english", "French", "es", "de"])
        yield find(rnd.choice(sets), text(" ".join(parts), **options))
    for s in ["a-b", "-fox-dog", "fox -bar-baz", "- fox", "--fox", '-fox"dog"', "fox -", '"fox" -"dog', "x\t-fox", "fox\n-dog", "fox\t-dog", "\u2010fox", "\u2014fox", "fox\u00a0-dog", 'fox "', '"', "-", "", " ", "fox,dog;lazy", "fox_dog", "'fox'", "fox's", "f\u0301ox", "ﬁx"]:
        for name in sets[:2]:
            yield find(name, text(s))


def filters(rnd):
    for f in [{"k": 1}, {"k": {"$gt": 1}}, {"_id": {"$lt": 20}}, {"$or": [{"k": 1}, {"s": 3}]}, {"s": None}, {"s": {"$exists": False}}, {"s": {"$in": [1, 2, 3]}}, {"s": {"$gte": 2, "$lt": 5}}, {"s": {"$ne": 3}}, {"s": {"$type": "null"}}, {"b": {"$exists": True}}, {"$expr": {"$gt": ["$_id", 12]}}, {"$nor": [{"k": 2}]}, {"a": {"$regex": "^The"}}, {"_id": 5}, {"k": {"$in": [2]}}]:
        for s in ["fox", "dog -quick", "running documents", "the"]:
            yield find("plaintexts_abc", {**text(s), **f})
            yield find("plaintexts_pre", {**text(s), "k": 2, **({} if "k" in f else f)})
            yield find("plaintexts_part", {**text(s), **f})
    for p in [0, 1, 2, L(1), D("2"), 5, None, {"$eq": 1}, {"$in": [1]}, {"$in": [1, 2]}, {"$gt": 0}, {"$exists": True}]:
        for n in [None, 1, {"$gt": 1}, {"$lt": 2}, {"$in": [0, 3]}, {"$ne": 1}]:
            yield find("texts_pre", {**text("los zorros crianças"), "p": p, **({} if n is None else {"n": n})})
    for o in [{"limit": 3}, {"skip": 2, "limit": 2}, {"sort": {"_id": -1}}, {"sort": {"k": 1, "score": {"$meta": "textScore"}, "_id": 1}}, {"projection": {"a": 1, "z": {"$add": [{"$meta": "textScore"}, 1]}}}, {"projection": {"a": 0, **SCORE}}, {"projection": {"k": {"$meta": "sortKey"}}}, {"projection": {"a": {"b": {"$meta": "textScore"}}}}, {"collation": {"locale": "fr"}}, {"hint": "_id_"}, {"hint": {"$natural": 1}}, {"sort": {"$natural": 1}}, {"returnKey": True}, {"showRecordId": True}, {"min": {"_id": 1}, "hint": {"_id": 1}}, {"sort": {"score": {"$meta": "foo"}}}]:
        yield find("plaintexts_a", text("fox lazy"), **o)
        yield find("plaintexts_a", {"k": 1}, **o)
    for c in [{"count": "plaintexts_a", "query": text("fox")}, {"distinct": "plaintexts_a", "key": "k", "query": text("fox")}, {"count": "plaintexts_a", "query": text("fox"), "limit": 2}, {"find": "plaintexts_a", "filter": text("fox"), "sort": {"_id": 1}}]:
        yield {"setup": "plaintexts_a", "cmd": c}


def refused(rnd):
    t = text("fox")
    for f in [{"$text": {}}, {"$text": 5}, {"$text": {"$search": 5}}, {"$text": {"$search": "a", "$language": 5}}, {"$text": {"$search": "a", "$language": "xx"}}, {"$text": {"$search": "a", "$language": ""}}, {"$text": {"$search": "a", "$caseSensitive": 1}}, {"$text": {"$search": "a", "$diacriticSensitive": "x"}}, {"$text": {"$search": "a", "z": 1}}, {"$and": [t, t]}, {"$or": [t, {"k": 2}]}, {"$or": [t, t]}, {"$or": [t, {"_id": 3}]}, {"$nor": [t]}, {"a": {"$not": t}}, {"a": {"$elemMatch": t}}, {"a": t}, {"$and": [{"$or": [t, {"_id": 1}]}, {"k": 1}]}, {"$or": [{**t, "k": 1}, {"_id": 3}]}, {"$and": [{"$and": [t]}]}]:
        for s in ["plaintexts_a", "plaintexts_pre", "plaintexts"]:
            yield {"setup": s, "cmd": {"find": s, "filter": f, "sort": {"_id": 1}}}
            yield {"setup": s, "cmd": {"aggregate": s, "pipeline": [{"$match": f}, {"$sort": {"_id": 1}}], "cursor": {}}}
    for c in [{"find": "nothere", "filter": t}, {"aggregate": "nothere", "pipeline": [{"$match": t}], "cursor": {}}, {"count": "plaintexts", "query": t}, {"distinct": "plaintexts", "key": "a", "query": t}, {"find": "plaintexts", "filter": {}, "projection": SCORE}, {"find": "plaintexts", "filter": {}, "sort": SCORE}]:
        yield {"setup": "plaintexts", "cmd": c}


def pipelines(rnd):
    t, m = text("fox lazy -running"), {"$meta": "textScore"}
    tails = [[{"$project": SCORE}], [{"$addFields": {"s": m}}, {"$project": {"s": 1}}], [{"$project": {"s": {"$multiply": [m, 2]}}}], [{"$sort": {"score": m, "_id": 1}}, {"$project": {"k": 1}}], [{"$sort": {"score": m, "_id": 1}}, {"$limit": 3}, {"$project": SCORE}], [{"$group": {"_id": "$k", "n": {"$sum": 1}}}], [{"$group": {"_id": None, "top": {"$max": m}}}], [{"$group": {"_id": {"$gt": [m, 1]}, "n": {"$sum": 1}}}], [{"$group": {"_id": "$k"}}, {"$project": SCORE}], [{"$group": {"_id": "$k"}}, {"$sort": {"score": m, "_id": 1}}], [{"$unwind": "$a"}, {"$project": SCORE}], [{"$limit": 100}, {"$project": SCORE}], [{"$skip": 0}, {"$project": SCORE}], [{"$match": {"k": 1}}, {"$project": SCORE}], [{"$match": t}], [{"$match": {"$expr": {"$gt": [m, 1]}}}], [{"$count": "n"}], [{"$replaceRoot": {"newRoot": {"_id": "$_id", "s": m}}}], [{"$replaceWith": {"_id": "$_id", "s": m}}], [{"$redact": {"$cond": [{"$gt": [m, 1]}, "$$KEEP", "$$PRUNE"]}}, {"$project": SCORE}], [{"$facet": {"x": [{"$project": SCORE}, {"$sort": {"_id": 1}}]}}], [{"$facet": {"x": [{"$match": t}]}}], [{"$lookup": {"from": "plaintexts", "localField": "k", "foreignField": "_id", "as": "j"}}, {"$project": {"j._id": 1, **SCORE}}], [{"$sort": {"k": 1, "_id": -1}}, {"$project": {"key": {"$meta": "sortKey"}}}], [{"$sort": {"score": m, "_id": 1}}, {"$project": {"key": {"$meta": "sortKey"}}}], [{"$unset": ["a", "b", "x"]}, {"$addFields": SCORE}], [{"$project": {"k": 1}}, {"$addFields": SCORE}], [{"$project": {"k": {"$let": {"vars": {"q": m}, "in": "$$q"}}}}]]
    for tail in tails:
        ordered = [{"$sort": {"_id": 1}}] if not any("$sort" in s or "$facet" in s for s in tail) else []
        for s in ["plaintexts_a", "plaintexts_abc"]:
            yield {"setup": s, "cmd": {"aggregate": s, "pipeline": [{"$match": t}, *tail, *ordered], "cursor": {}}}
        yield {"setup": "plaintexts", "cmd": {"aggregate": "plaintexts", "pipeline": [*tail, *ordered], "cursor": {}}}
    for before in [[{"$match": {"k": 1}}], [{"$sort": {"k": 1}}], [{"$limit": 1}], [{"$project": {"a": 1}}]]:
        yield {"setup": "plaintexts_a", "cmd": {"aggregate": "plaintexts_a", "pipeline": [*before, {"$match": t}], "cursor": {}}}
    yield {"setup": "plaintexts", "also": ["plaintexts_a"], "cmd": {"aggregate": "plaintexts", "pipeline": [{"$limit": 2}, {"$lookup": {"from": "plaintexts_a", "pipeline": [{"$match": t}, {"$sort": {"s": m, "_id": 1}}, {"$project": SCORE}], "as": "x"}}, {"$project": {"x": 1}}], "cursor": {}}}
    yield {"setup": "plaintexts", "also": ["plaintexts_a"], "cmd": {"aggregate": "plaintexts", "pipeline": [{"$limit": 2}, {"$project": {"k": 1}}, {"$unionWith": {"coll": "plaintexts_a", "pipeline": [{"$match": t}, {"$sort": {"_id": 1}}, {"$project": SCORE}]}}], "cursor": {}}}


def sort_keys(rnd):
    k = {"$meta": "sortKey"}
    for s in ["nums", "mixed", "arrays", "strs"]:
        field = {"nums": ["a", "b", "c", "z.k", "d"], "mixed": ["a", "n.x", "t"], "arrays": ["t", "m.a.b", "e.p"], "strs": ["s"]}[s]
        for f in field:
            for d in (1, -1):
                yield {"setup": s, "cmd": {"aggregate": s, "pipeline": [{"$sort": {f: d, "_id": 1}}, {"$project": {"k": k}}], "cursor": {}}}
                yield {"setup": s, "cmd": {"aggregate": s, "pipeline": [{"$match": {"_id": {"$lt": 30}}}, {"$sort": {f: d, "_id": -1}}, {"$limit": 9}, {"$addFields": {"k": {"$arrayElemAt": [k, 0]}}}, {"$project": {"k": 1}}], "cursor": {}}}
                yield {"setup": s, "cmd": {"find": s, "filter": {"_id": {"$lt": 20}}, "sort": {f: d, "_id": 1}, "projection": {"k": k}}}
    for tail in [[{"$project": {"k": k}}], [{"$sort": {"a": 1, "_id": 1}}, {"$group": {"_id": "$c", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}, {"$project": {"k": k}}], [{"$sort": {"a": 1}}, {"$sort": {"_id": -1}}, {"$project": {"k": k}}], [{"$sort": {"_id": 1}}, {"$skip": 3}, {"$match": {"a": {"$gt": 2}}}, {"$project": {"k": k}}], [{"$sort": {"_id": 1}}, {"$limit": 3}, {"$unwind": {"path": "$z", "preserveNullAndEmptyArrays": True}}, {"$project": {"k": k}}], [{"$sort": {"_id": 1}}, {"$group": {"_id": None, "k": {"$push": k}}}], [{"$project": {"k": {"$meta": "foo"}}}], [{"$project": {"k": {"$meta": 5}}}], [{"$project": {"k": {"$meta": "randVal"}}}, {"$sort": {"_id": 1}}], [{"$sort": {"_id": 1}}, {"$facet": {"x": [{"$limit": 2}, {"$project": {"k": k}}]}}]]:
        yield {"setup": "nums", "cmd": {"aggregate": "nums", "pipeline": tail, "cursor": {}}}


def indexes(rnd):
    def make(key, name="x", **o):
        return {"docs": [{"_id": 1, "a": "fox dog", "b": "cat"}], "cmd": {"createIndexes": "w", "indexes": [{"key": key, "name": name, **o}]}, "then": [{"listIndexes": "w"}], "after": False}
    one = {"a": "text"}
    for key in [one, {"a": "text", "b": "text"}, {"$**": "text"}, {"p": 1, "a": "text", "s": -1}, {"a": "text", "b": 1, "c": "text"}, {"p": "hashed", "a": "text"}, {"_fts": "text", "_ftsx": 1}, {"a": "text", "_fts": 1}, {"a": "text", "b.$x": 1}, {"a.b": "text"}, {"a.$x": "text"}, {"a.$**": "text"}, {"$**": "text", "a": 1}, {"a": 1, "$**": "text"}, {"p": "text", "a": 1, "b": "text"}, {"a": 1, "b": "text", "c": "2dsphere"}, {"a": "text", "$**": "text"}, {"a": "text", "p": "hashed"}, {"a": "text", "b": 0}, {"a": "text", "b": "x"}, {"": "text"}, {"a.": "text"}, {"_fts": 1}, {"a": "texts"}, {"_id": "text"}, {"a": "text", "_id": 1}]:
        yield make(key)
        yield make(key, weights={"q": 2})
    for o in [{"weights": w} for w in [{"a": 3}, {"z": 2}, {"a": 0}, {"a": 1e9}, {"a": "x"}, {"a": 2.5}, "a", 5, {"a.$x": 1}, {"": 1}, {"$**": 1}, {"a": L(3)}, {"a": D("4")}, {}, {"a": 99999}, {"a": 100000}, {"a": -1}, {"a..b": 1}, {"a": None}]] + [{"default_language": v} for v in ["french", "fr", "none", "French", "xx", 5, "", "mongo", "nb", "zho"]] + [{"language_override": v} for v in ["lang", 5, "", "$x", "a.b"]] + [{"textIndexVersion": v} for v in [3, 4, 0, "3", 3.5]] + [{"unique": True}, {"sparse": True}, {"expireAfterSeconds": 10}, {"collation": {"locale": "fr"}}, {"collation": {"locale": "simple"}}, {"hidden": True}, {"partialFilterExpression": {"q": 1}}, {"partialFilterExpression": text("x")}, {"background": True}, {"v": 1}, {"wildcardProjection": {"a": 1}}]:
        yield make(one, **o)
        yield make({"p": 1, "$**": "text"}, **o)
    for o in [{}, {"weights": {"a": 3}}, {"default_language": "french"}, {"language_override": "x"}]:
        for key in [one, {"b": "text"}, {"p": 1, "a": "text"}, {"$**": "text"}, {"_fts": "text", "_ftsx": 1}]:
            for name in ["x", "y"]:
                yield {"docs": [], "pre": [{"createIndexes": "w", "indexes": [{"key": one, "name": "x"}]}], "cmd": {"createIndexes": "w", "indexes": [{"key": key, "name": name, **o, **({"weights": {"a": 1}} if "_fts" in key and "weights" not in o else {})}]}, "then": [{"listIndexes": "w"}], "after": False}
    for i in ["x", one, {"_fts": "text", "_ftsx": 1}, "*", ["x"]]:
        yield {"docs": [], "pre": [{"createIndexes": "w", "indexes": [{"key": one, "name": "x"}]}], "cmd": {"dropIndexes": "w", "index": i}, "then": [{"listIndexes": "w"}], "after": False}


def writes(rnd):
    ix = [{"createIndexes": "w", "indexes": [{"key": {"a": "text", "b": 1}, "name": "x"}]}]
    look = [{"find": "w", "filter": text("fox"), "projection": {"_id": 1, **SCORE}, "sort": BEST}, {"find": "w", "filter": text("perro", language="es"), "sort": {"_id": 1}}]
    docs = [{"_id": 1, "a": "the fox", "b": 1}, {"_id": 2, "a": ["a dog", "fox fox"], "b": 2}, {"_id": 3, "a": "los perros", "language": "spanish"}]
    for d in [{"_id": 9, "a": "x", "language": 5}, {"_id": 9, "a": "x", "language": "xx"}, {"_id": 9, "a": "fox", "b": [1, 2]}, {"_id": 9, "b": [1]}, {"_id": 9, "a": 5, "language": 5}, {"_id": 9, "a": "foxes", "language": "none"}, {"_id": 9, "a": {"x": "fox"}}, {"_id": 9, "a": [["fox"]]}, {"_id": 9, "a": ["fox", 5, None, "hen fox"]}, {"_id": 9, "a": "fox " * 60}, {"_id": 9, "a": "x" * 400}, {"_id": 9, "a": "perros", "language": "ES"}, {"_id": 9, "a": "fox", "language": None}, {"_id": 9, "a": "fox", "language": ""}]:
        yield {"docs": docs, "pre": ix, "cmd": {"insert": "w", "documents": [d]}, "then": look}
    for q, u in [({"_id": 1}, {"$set": {"a": "hen"}}), ({"_id": 1}, {"$set": {"language": "french"}}), ({"_id": 3}, {"$set": {"language": "xx"}}), ({"_id": 1}, {"$set": {"b": [1]}}), ({"_id": 2}, {"$push": {"a": "fox"}}), ({"_id": 2}, {"$unset": {"a": 1}}), ({"_id": 1}, {"a": "fox fox fox"}), (text("fox"), {"$set": {"z": 1}}), (text("fox"), {"$set": {"a": "gone"}}), (text("nothing"), {"$set": {"a": "fox"}})]:
        for multi in ([False, True] if "$set" in u else [False]):
            if multi or "_id" in q or q == text("nothing"):
                yield {"docs": docs, "pre": ix, "cmd": {"update": "w", "updates": [{"q": q, "u": u, "multi": multi}]}, "then": look}
        yield {"docs": docs, "pre": ix, "cmd": {"findAndModify": "w", "query": q, "update": u, "sort": {"_id": 1}}, "then": look}
    for c in [{"delete": "w", "deletes": [{"q": text("fox"), "limit": 0}]}, {"delete": "w", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, {"findAndModify": "w", "query": text("fox"), "sort": BEST, "remove": True}, {"findAndModify": "w", "query": text("fox"), "sort": {"_id": 1}, "update": {"$set": {"z": 1}}, "fields": SCORE}, {"update": "w", "updates": [{"q": {**text("zzz"), "b": 9}, "u": {"$set": {"_id": 7}}, "upsert": True}]}, {"delete": "w", "deletes": [{"q": text("fox", language="xx"), "limit": 1}]}]:
        yield {"docs": docs, "pre": ix, "cmd": c, "then": look}
        yield {"docs": docs, "cmd": c}


WORDS = ["Café", "cafe", "CAFÉ", "ÉCOLE", "école", "ecole", "naïve", "straße", "STRASSE", "running", "Running", "runs", "don't", "foo-bar", "foo_bar", "foo@bar.com", "l'avion", "avion", "über", "ÜBER", "the cat", "ПРИВЕТ", "привет", "日本語", "日本", "ΑΡΧΉ", "αρχή", "dog’s", "dogs", "a\u0301", "á", "C++", "€100", "100", "İstanbul", "istanbul", "mid\u00a0space", "end—dash", "“quoted”", "quoted"]


def versions(rnd):
    """Indexes as older servers made them."""
    docs = [{"_id": i, "t": w} for i, w in enumerate(WORDS)]
    look = {"projection": {"_id": 1, **SCORE}, "sort": {"_id": 1}}
    for v in [1, 2]:
        pre = [{"createIndexes": "w", "indexes": [{"key": {"t": "text"}, "name": "x", "textIndexVersion": v}]}]
        for search in WORDS + ['"Café"', '"cafe"', '"CAFÉ"', '"foo-bar"', "-cafe naïve café", '"RUN"', '"привет"']:
            for kw in [{}, {"caseSensitive": True}, {"diacriticSensitive": True}, {"language": "none"}]:
                yield {"docs": docs, "pre": pre, "cmd": {"find": "w", "filter": text(search, **kw), **look}, "after": False}
        shapes = [{"_id": 1, "a": {"b": "fox dog fox"}, "c": ["fox", "cat", {"d": "fox"}]}, {"_id": 2, "a": [{"b": "fox"}, {"b": "dogs dogs"}], "c": [["fox"]]}, {"_id": 3, "a": {"lang": "french", "b": "continuellement"}}, {"_id": 4, "a": {"b": "continuellement"}, "lang": "french"}, {"_id": 5, "c": "Fox"}, {"_id": 6, "a": {"b": ["fox", "fox dog"]}}, {"_id": 7, "lang": "zz", "c": "foxes"}, {"_id": 8, "lang": 5, "c": "foxes"}]
        for key in [{"a.b": "text", "c": "text"}, {"$**": "text"}]:
            pre = [{"createIndexes": "w", "indexes": [{"key": key, "name": "x", "textIndexVersion": v, "weights": {"a.b": 3}, "language_override": "lang"}]}] + [{"insert": "w", "documents": shapes, "ordered": False}]
            for search in ["fox", "dog", "cat", "continuel", "continuellement", "french", "foxes"]:
                yield {"docs": [], "pre": pre, "cmd": {"find": "w", "filter": text(search), **look}, "after": False}
        for language in ["english", "English", "french", "klingon", "", "none", "ENGLISH", 5]:
            make = {"createIndexes": "w", "indexes": [{"key": {"t": "text"}, "name": "x", "textIndexVersion": v, "default_language": language}]}
            yield {"docs": docs, "cmd": make, "then": [{"listIndexes": "w"}, {"find": "w", "filter": text("running the"), **look}], "after": False}
            if language != 5:
                yield {"docs": docs, "pre": [{**make, "indexes": [{**make["indexes"][0], "default_language": "french"}]}], "cmd": {"find": "w", "filter": text("running the", language=language), **look}, "after": False}


TOPICS = {"text.words": words, "text.searches": searches, "text.filters": filters, "text.refused": refused, "text.pipelines": pipelines, "text.indexes": indexes, "text.writes": writes, "text.versions": versions, "meta.sortkey": sort_keys}
