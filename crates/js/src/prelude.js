// What a script finds besides JavaScript itself: BSON's types and MongoDB's helpers, and fences around built-in
// functions that could run for hours without the engine looking up.
(function (native) {
  'use strict';
  const kept = {};
  const global = globalThis;
  const hidden = (target, members) => {
    for (const name of Object.keys(members)) {
      Object.defineProperty(target, name, { value: members[name], writable: true, configurable: true });
    }
  };
  const type = (name, make, members) => {
    const maker = { [name]: function (...args) { return make(...args); } }[name];
    hidden(maker.prototype, members);
    hidden(maker.prototype, { [Symbol.toStringTag]: name, tojson() { return this.toString(); } });
    Object.defineProperty(maker.prototype, Symbol.toStringTag, { value: name });
    kept[name] = maker.prototype;
    hidden(global, { [name]: maker });
    return maker;
  };
  const getter = (proto, name, get) => Object.defineProperty(proto, name, { get, configurable: true });
  const make = native.make, text = native.text;
  const plain = (v) => (v !== null && typeof v === 'object' && native.isHeld(v) ? text(v) : String(v));

  const NumberLong = type('NumberLong', (v = 0) => make('NumberLong', plain(v)), {
    toNumber() { return Number(text(this)); },
    valueOf() { return Number(text(this)); },
    toString() {
      const t = text(this), n = Number(t);
      return n >= -2147483648 && n <= 2147483647 ? `NumberLong(${t})` : `NumberLong("${t}")`;
    },
    toJSON() { return { $numberLong: text(this) }; },
    compare(other) { return native.compare(this, other); },
  });
  getter(NumberLong.prototype, 'floatApprox', function () { return Number(text(this)); });
  getter(NumberLong.prototype, 'top', function () { return Number(BigInt.asUintN(64, BigInt(text(this))) >> 32n); });
  getter(NumberLong.prototype, 'bottom', function () { return Number(BigInt.asUintN(32, BigInt(text(this)))); });
  getter(NumberLong.prototype, 'exactValueString', function () { return text(this); });

  type('NumberInt', (v = 0) => make('NumberInt', plain(v)), {
    toNumber() { return Number(text(this)); },
    valueOf() { return Number(text(this)); },
    toString() { return `NumberInt(${text(this)})`; },
    toJSON() { return Number(text(this)); },
  });
  type('NumberDecimal', (v = '0') => make('NumberDecimal', plain(v)), {
    toString() { return `NumberDecimal("${text(this)}")`; },
    toJSON() { return { $numberDecimal: text(this) }; },
  });
  const ObjectId = type('ObjectId', (v) => make('ObjectId', v === undefined ? '' : plain(v)), {
    valueOf() { return text(this); },
    toString() { return `ObjectId("${text(this)}")`; },
    toJSON() { return { $oid: text(this) }; },
    getTimestamp() { return new Date(parseInt(text(this).slice(0, 8), 16) * 1000); },
    equals(other) { return native.isHeld(other) && text(this) === text(other); },
  });
  getter(ObjectId.prototype, 'str', function () { return text(this); });
  const BinData = type('BinData', (subtype, base64) => make('BinData', `${subtype}:${base64}`), {
    toString() {
      const [subtype, base64, hex] = native.binary(this);
      const uuid = () => `UUID("${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}")`;
      return subtype === 4 && hex.length === 32 ? uuid() : `BinData(${subtype},"${base64}")`;
    },
    toJSON() {
      const [subtype, base64] = native.binary(this);
      return { $binary: base64, $type: subtype.toString(16).padStart(2, '0') };
    },
    length() { return native.binary(this)[2].length / 2; },
    subtype() { return native.binary(this)[0]; },
    base64() { return native.binary(this)[1]; },
    hex() { return native.binary(this)[2]; },
  });
  getter(BinData.prototype, 'len', function () { return this.length(); });
  getter(BinData.prototype, 'type', function () { return this.subtype(); });
  const Timestamp = type('Timestamp', (t = 0, i = 0) => make('Timestamp', `${t}:${i}`), {
    toString() { return `Timestamp(${this.t}, ${this.i})`; },
    toJSON() { return { $timestamp: { t: this.t, i: this.i } }; },
    getTime() { return this.t; },
    getInc() { return this.i; },
  });
  getter(Timestamp.prototype, 't', function () { return Number(text(this).split(':')[0]); });
  getter(Timestamp.prototype, 'i', function () { return Number(text(this).split(':')[1]); });

  const edge = (name) => {
    const key = '$' + name[0].toLowerCase() + name.slice(1);
    const value = { [name]: function () { return value; } }[name];
    hidden(value, { toJSON: () => ({ [key]: 1 }), tojson: () => `{ "${key}" : 1 }`, toString: () => `[object ${name}]` });
    Object.defineProperty(value, Symbol.toStringTag, { value: name });
    kept[name] = value;
    hidden(global, { [name]: value });
  };
  edge('MinKey');
  edge('MaxKey');

  const reference = (ns, id, db) => (db === undefined ? { $ref: ns, $id: id } : { $ref: ns, $id: id, $db: db });
  const DBRef = function DBRef(ns, id, db) { return Object.assign(Object.create(DBRef.prototype), reference(ns, id, db)); };
  hidden(DBRef.prototype, { toString() { return `DBRef("${this.$ref}", ${tojson(this.$id)})`; } });

  // Shown as MongoDB's shells show it.
  const field = (name) => JSON.stringify(name);
  const object = (x, indent, oneLine) => {
    const names = Object.keys(x);
    if (names.length === 0) return '{ }';
    if (oneLine) return '{ ' + names.map((n) => ` ${field(n)} : ${show(x[n], '', true)}`).join(', ') + ' }';
    const inner = indent + '\t';
    return '{\n' + names.map((n) => `${inner}${field(n)} : ${show(x[n], inner, false)}`).join(',\n') + `\n${indent}}`;
  };
  const list = (x, indent, oneLine) => {
    if (x.length === 0) return '[ ]';
    const inner = indent + '\t';
    if (oneLine) return '[ ' + x.map((v) => show(v, '', true)).join(', ') + ' ]';
    return '[\n' + x.map((v) => inner + show(v, inner, false)).join(',\n') + `\n${indent}]`;
  };
  const show = (x, indent, oneLine) => {
    switch (typeof x) {
      case 'string': return JSON.stringify(x);
      case 'function': return typeof x.tojson === 'function' ? x.tojson() : x.toString();
      case 'object': break;
      default: return String(x);
    }
    if (x === null) return 'null';
    if (typeof x.tojson === 'function') return x.tojson();
    if (x instanceof RegExp) return x.toString();
    return Array.isArray(x) ? list(x, indent, oneLine) : object(x, indent, oneLine);
  };
  const tojson = (x, indent = '', oneLine = undefined) => {
    if (oneLine === true) return show(x, '', true);
    const lines = show(x, indent, false);
    return oneLine === undefined && lines.length < 80 ? lines.replace(/[\t\n]+/g, ' ') : lines;
  };
  const fail = (message) => { throw new Error(message); };
  const two = (n, width = 2) => String(n).padStart(width, '0');

  hidden(global, {
    DBRef,
    tojson,
    tojsononeline: (x) => show(x, '', true),
    tojsonObject: tojson,
    HexData: (subtype, hex) => make('HexData', `${subtype}:${hex}`),
    UUID: (hex) => make('HexData', hex === undefined ? 'uuid' : `4:${hex.replace(/-/g, '')}`),
    MD5: (hex) => make('HexData', `5:${hex}`),
    DBPointer: (ns, id) => ({ ns, id }),
    Code: (code, scope) => (scope === undefined ? { code } : { code, scope }),
    ISODate(iso) {
      if (iso === undefined) return new Date();
      const d = new Date(/^\d{4}-\d\d-\d\d \d/.test(iso) ? iso.replace(' ', 'T') : iso);
      const zoned = /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(iso.replace(' ', 'T')) ? new Date(iso.replace(' ', 'T') + 'Z') : d;
      return Number.isNaN(zoned.getTime()) ? fail(`invalid ISO date: ${iso}`) : zoned;
    },
    hex_md5: (s) => native.md5(String(s)),
    isNumber: (x) => typeof x === 'number',
    isString: (x) => typeof x === 'string',
    isObject: (x) => typeof x === 'object',
    bsonWoCompare: (a, b) => native.compare(a, b),
    bsonBinaryEqual: (a, b) => native.compare(a, b) === 0,
    assert: (ok, message) => (ok ? undefined : fail(`assert failed${message === undefined ? '' : ' : ' + message}`)),
    doassert: (message) => fail(message),
    print() {},
    printjson() {},
    printjsononeline() {},
    gc() {},
    sleep: (ms) => native.sleep(Number(ms)),
    version: () => native.version,
  });
  hidden(Date.prototype, {
    tojson() {
      const day = `${two(this.getUTCFullYear(), 4)}-${two(this.getUTCMonth() + 1)}-${two(this.getUTCDate())}`;
      const ms = this.getUTCMilliseconds();
      const time = `${two(this.getUTCHours())}:${two(this.getUTCMinutes())}:${two(this.getUTCSeconds())}`;
      return `ISODate("${day}T${time}${ms ? '.' + two(ms, 3) : ''}Z")`;
    },
  });
  hidden(String.prototype, {
    ltrim() { return this.trimStart(); },
    rtrim() { return this.trimEnd(); },
  });
  hidden(Object, {
    extend: (to, from) => Object.assign(to, from),
    merge: (a, b) => Object.assign({}, a, b),
    keySet: (x) => Object.keys(x),
    bsonsize: (x) => native.size(x),
  });
  const mean = (a) => a.reduce((s, x) => s + x, 0) / a.length;
  hidden(Array, {
    sum: (a) => (a.length === 0 ? null : a.reduce((s, x) => s + x)),
    avg: (a) => (a.length === 0 ? null : mean(a)),
    stdDev: (a) => { const m = mean(a); return Math.sqrt(a.reduce((s, x) => s + (x - m) ** 2, 0) / a.length); },
    contains: (a, x) => a.some((y) => x === y || native.compare(x, y) === 0),
    unique: (a) => a.filter((x, i) => a.findIndex((y) => native.compare(x, y) === 0) === i),
    tojson: (a, indent, oneLine) => tojson(a, indent, oneLine),
  });

  // Built-in loops over a claimed length do not look up. A length is believed of arrays only, and not beyond
  // what fits into memory; long ones count as a stretch of work.
  const apply = Reflect.apply, isArray = Array.isArray, tick = native.tick;
  const fence = (proto, names, check) => {
    for (const name of names) {
      const inner = proto[name];
      hidden(proto, { [name]: { [name](...args) { return apply(inner, check(this, args), args); } }[name] });
    }
  };
  const ARRAY_MAX = native.arrayMax, LONG = 4096;
  const long = (n) => {
    if (n > ARRAY_MAX) throw new RangeError('array is too long');
    if (n > LONG) tick();
  };
  fence(Array.prototype, ['concat', 'copyWithin', 'fill', 'flat', 'includes', 'indexOf', 'join', 'lastIndexOf', 'pop',
    'push', 'reverse', 'shift', 'slice', 'splice', 'toReversed', 'toSpliced', 'toString', 'toLocaleString', 'unshift', 'with',
    'at', 'keys', 'values', 'entries'], (self) => {
    if (isArray(self)) { long(self.length); return self; }
    const n = Math.min(Math.max(Math.trunc(Number(self.length)) || 0, 0), ARRAY_MAX + 1);
    long(n);
    const copy = [];
    for (let i = 0; i < n; i++) copy[i] = self[i];
    return copy;
  });
  const textOrder = (a, b) => { a = String(a); b = String(b); return a < b ? -1 : a > b ? 1 : 0; };
  fence(Array.prototype, ['sort', 'toSorted'], (self, args) => {
    if (!isArray(self)) throw new TypeError('not an array');
    long(self.length);
    if (args[0] === undefined) args[0] = textOrder;
    return self;
  });
  fence(Array.prototype, ['every', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flatMap', 'forEach', 'map',
    'reduce', 'reduceRight', 'some'], (self) => { if (isArray(self)) long(self.length); return self; });
  const WORK_MAX = native.searchMax;
  fence(String.prototype, ['includes', 'indexOf', 'lastIndexOf', 'replace', 'replaceAll', 'split'], (self, args) => {
    const s = String(self);
    if (s.length > LONG) {
      tick();
      if (typeof args[0] === 'string' && s.length * args[0].length > WORK_MAX) throw new RangeError('search is too long');
    }
    return s;
  });
  fence(String.prototype, ['concat', 'match', 'matchAll', 'normalize', 'padEnd', 'padStart', 'repeat', 'search', 'slice',
    'substring', 'substr', 'toLowerCase', 'toUpperCase', 'trim', 'trimStart', 'trimEnd', 'localeCompare'], (self) => {
    if (typeof self === 'string' && self.length > LONG) tick();
    return self;
  });
  for (const [holder, names] of [[JSON, ['parse', 'stringify']], [Object, ['keys', 'values', 'entries', 'assign', 'fromEntries',
    'getOwnPropertyNames', 'freeze', 'seal']], [Array, ['from', 'of']]]) {
    fence(holder, names, (self) => { tick(); return self; });
  }
  for (const kind of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array,
    Float64Array, BigInt64Array, BigUint64Array]) {
    const proto = Object.getPrototypeOf(kind.prototype);
    if (proto.fenced) continue;
    hidden(proto, { fenced: true });
    fence(proto, ['copyWithin', 'fill', 'includes', 'indexOf', 'join', 'lastIndexOf', 'reverse', 'set', 'slice', 'sort',
      'toReversed', 'toSorted'], (self) => { if (self.length > LONG) tick(); return self; });
  }
  // A proxy can claim any length; the others share memory or wait.
  for (const name of ['Proxy', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry']) delete global[name];

  kept.functions = [];
  kept.object = Object.prototype;
  kept.fold = (f, state, calls) => { for (const args of calls) state = f.call({}, state, ...args); return state; };
  kept.isTruthy = (v) => !!v;
  kept.dateMs = (d) => d.getTime();
  kept.Date = Date;
  kept.RegExp = RegExp;
  kept.wellFormed = (s) => s.toWellFormed();
  return kept;
})
