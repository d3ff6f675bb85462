"""Records what a real server's scripts answer: record.py mongodb://host:port > recorded.json

One line per case: {"function", "args", "r"} or {"where", "doc", "r"}; "r" is {"v": value} or {"code": number}.
"""
import sys
import pymongo
from bson import json_util

SAMPLE = json_util.loads("""{"d": 1.5, "i": {"$numberInt": "5"}, "l": {"$numberLong": "9007199254740993"}, "s": {"$numberLong": "7"},
 "t": "str", "o": {"x": {"$numberInt": "1"}, "y": [{"$numberInt": "1"}, {"$numberInt": "2"}, {"z": {"$numberInt": "3"}}]},
 "a": [{"$numberInt": "1"}, "b", null], "dt": {"$date": "2020-01-02T00:00:00Z"}, "n": null,
 "id": {"$oid": "507f1f77bcf86cd799439011"}, "bin": {"$binary": {"base64": "YWJj", "subType": "00"}},
 "u": {"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}}, "dec": {"$numberDecimal": "1.5"},
 "ts": {"$timestamp": {"t": 5, "i": 6}}, "c": {"$code": "function(){}"}, "min": {"$minKey": 1}, "max": {"$maxKey": 1},
 "b": true, "e": {}}""", json_options=json_util.CANONICAL_JSON_OPTIONS)

OF_VALUE = ["x", "[x]", "({p: x})", "typeof x", "'' + x", "`${x}`", "tojson(x)", "tojson({a: [x]})", "x == 7", "x === 5", "x < 8",
            "x + 1", "x ? 1 : 2", "x instanceof Object", "Object.keys(Object(x))", "isNumber(x)", "isObject(x)", "Number(x)",
            "x && x.toString()", "x && x.valueOf()", "Array.isArray(x)", "bsonWoCompare({a: x}, {a: 5})", "bsonBinaryEqual({a: x}, {a: x})"]
PLAIN = ["1", "-0", "NaN", "Infinity", "2147483648", "'x'", "null", "undefined", "[1, , 3]", "({a: 1, b: undefined})", "new Date(5)",
         "function(){return 3}", "NumberLong(5)", "NumberLong('9007199254740993')", "NumberInt(3)", "NumberDecimal('1.1')",
         "ObjectId('507f1f77bcf86cd799439011')", "UUID('00112233-4455-6677-8899-aabbccddeeff')", "BinData(0, 'YWJj')",
         "HexData(0, '616263')", "MD5('00112233445566778899aabbccddeeff')", "ISODate('2020-01-01')", "ISODate('2020-01-01T10:11:12.5Z')",
         "Timestamp(1, 2)", "MinKey", "MaxKey()", "new MinKey()", "DBRef('a', 1)", "DBPointer('a', ObjectId('507f1f77bcf86cd799439011'))",
         "Code('x')", "Symbol('a')", "1n", "new Set([1])", "new Number(5)", "new String('s')", "new Boolean(true)", "hex_md5('a')",
         "tojson({a: 1})", "tojsononeline({a: NumberLong(1)})", "tojson([])", "tojson({})", "tojson({a: {b: [1, {c: 2}]}})",
         "tojson({a: 'x'.repeat(90), b: [1, {c: 2}]})", "print('x')", "typeof db", "typeof load", "typeof sleep", "typeof Map",
         "isString('a')", "Array.sum([1, 2])", "Array.avg([1, 2])", "Array.stdDev([1, 2])", "Array.contains([1], 1)",
         "Array.unique([1, 1, 2])", "' a '.ltrim()", "' a '.rtrim()", "Object.extend({a: 1}, {b: 2})", "Object.merge({a: 1}, {b: 2})",
         "Object.bsonsize({a: 1})", "Object.keySet({a: 1})", "bsonWoCompare({a: 1}, {a: 2})", "NumberLong(5) + 1", "NumberLong(5).toNumber()",
         "NumberLong('9007199254740993').top", "NumberInt(5) + 1", "NumberDecimal('1') + 1", "ObjectId('507f1f77bcf86cd799439011').str",
         "ObjectId('507f1f77bcf86cd799439011').getTimestamp()", "BinData(0, 'YWJj').len", "BinData(0, 'YWJj').hex()", "Timestamp(1, 2).t",
         "NumberLong(1).compare(NumberLong(2))", "NumberLong(2) == 2", "NumberLong(2) === NumberLong(2)", "new Error('x')", "Math",
         "(function() { throw new Error('boo') })()", "(function() { throw 'boo' })()", "(function() { throw {a: 1} })()", "nofn()",
         "(function() { let x = {}; x.x = x; return x })()", "'\\\\ud800'.length", "({'a\\\\u0000b': 1})", "eval('1+1')", "new Date(NaN)",
         "[NumberInt(1), NumberLong(2)]", "({'$a': 1, 'b.c': 2})", "assert(true)", "assert(false)", "new Uint8Array([1, 2])"]
OF_OBJECT = ["o.x = 2; return o", "o.q = 2; return o", "delete o.x; return o", "return {x: o.x}", "return o.y", "return [o]", "return {p: o}",
             "o.y.push(1); return o", "o.y[2].z = 9; return o", "o.x = 5.5; return o", "return Object.keys(o)", "return 'x' in o",
             "return Object.assign({}, o)", "return JSON.parse(JSON.stringify(o))", "return {...o}", "return o.y.map(x => x)"]
BODIES = ["return 1", "1", "() => 5", "(x) => x", "return function(){return 2}", "5+5", "(function(){return 8})", "function(){return 1};",
          "function f(){return 1}", "  function(){return 1}", "//c\nfunction(){return 1}", "function(){return this}", "function(){return obj}",
          "var x = 1; x + 1", "if (true) { return 3 }", "class A{}", "function(x){return x"]
WHERE = ["1", "this.d == 1.5", "obj.d == 1.5", "return this.d == 1.5", "function(){return this.d == 1.5}", "() => true", "return 0", "'a'", "null",
         "[]", "({})", "NaN", "throw 1", "nofn()", "this.nope.x", "syntax error here", "var x = 1; return x == 1", "var x = 1; x == 1",
         "if (true) { return true }", "this.s == 7", "this.l == '9007199254740993'", "this.id == '507f1f77bcf86cd799439011'",
         "this.dt.getFullYear() == 2020", "this.o.y[2].z == 3", "this.a.length == 3", "this.i === 5", "'i' in this", "'nope' in this",
         "this.hasOwnProperty('i')", "this.nope === undefined", "this.n === null", "tojson(this).length > 10",
         "delete this.i; return this.i === undefined", "{ return true }", "// c\nreturn true", "/* */ true", "(function(){return true})",
         "new Boolean(false)", "NumberLong(0)", "undefined", "this", "1,0", "arguments.length == 0", "Array.isArray(this.a)", "class A{}"]


def main():
    db = pymongo.MongoClient(sys.argv[1], directConnection=True).script_record
    db.c.drop()
    db.c.insert_one({"_id": 0, **SAMPLE})

    def show(case):
        print(json_util.dumps(case, json_options=json_util.CANONICAL_JSON_OPTIONS))

    def function(code, args):
        call = {"$function": {"body": code, "args": args, "lang": "js"}}
        try:
            r = {"v": next(db.c.aggregate([{"$project": {"_id": 0, "r": call}}]))["r"]}
        except pymongo.errors.OperationFailure as e:
            r = {"code": e.code}
        show({"function": code, "args": [SAMPLE[a[1:]] for a in args], "r": r})

    for field in SAMPLE:
        for e in OF_VALUE:
            function("function(x) { return %s }" % e, ["$" + field])
    for e in PLAIN:
        function("function() { return %s }" % e, [])
    for e in OF_OBJECT:
        function("function(o) { %s }" % e, ["$o"])
    for e in BODIES:
        function(e, [])
    for code in WHERE:
        try:
            r = {"v": len(list(db.c.find({"$where": code}, {"_id": 1}))) == 1}
        except pymongo.errors.OperationFailure as e:
            r = {"code": e.code}
        show({"where": code, "doc": SAMPLE, "r": r})
    db.c.drop()


main()
