#!/usr/bin/env python3
"""Writes decimal128.txt: results of Python's decimal module (34 digits, half-even, decimal128's exponents).

Run by hand when operations are added: python3 make_decimal128.py, and keep the lines of exp, ln, log10 and the circular and
hyperbolic functions, which are at the end: these were recorded from a real server (6.0.5), whose last digits are its own.
Each line: operation, operands, result; blanks between.
"""
import random
from decimal import ROUND_HALF_EVEN, Context, Decimal

random.seed(128)
C = Context(prec=34, rounding=ROUND_HALF_EVEN, Emin=-6143, Emax=6144, clamp=1, capitals=1, flags=[], traps=[])
WIDE = Context(prec=13000, rounding=ROUND_HALF_EVEN, Emin=-99999, Emax=99999, capitals=1, flags=[], traps=[])
MID = Context(prec=120, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, capitals=1, flags=[], traps=[])
PER_OPERATION = 120


def number(spread=40, digits=34):
    n = random.randint(1, digits)
    c = random.choice([random.randint(0, 10**n - 1), 10**n - 1, 10 ** (n - 1), 5 * 10 ** (n - 1), random.randint(0, 99)])
    e = random.choice([0, 0, -2, -n, random.randint(-spread, spread)])
    sign = random.choice(["", "", "-"])
    return C.create_decimal(f"{sign}{c}E{e}")


SPECIAL = [C.create_decimal(s) for s in "0 -0 NaN Infinity -Infinity 1 -1 1E-6176 9.999999999999999999999999999999999E+6144 0E+3 0E-3".split()]


def operands(count, **kw):
    for i in range(PER_OPERATION):
        if i < 22:
            yield [random.choice(SPECIAL) for _ in range(count)]
        elif i < 40:
            yield [number(6100, **kw) for _ in range(count)]
        else:
            yield [number(**kw) for _ in range(count)]


def line(op, args, result):
    print(op, *args, "NaN" if result.is_nan() else result)


for op, f in [("add", C.add), ("sub", C.subtract), ("mul", C.multiply), ("div", C.divide)]:
    for a, b in operands(2):
        line(op, (a, b), f(a, b))
for a, b in operands(2):
    if a.is_finite() and b.is_finite() and b:
        line("rem", (a, b), C.create_decimal(WIDE.remainder(a, b)))
    else:
        line("rem", (a, b), C.remainder(a, b))
for a, b in operands(2):
    if not a.is_nan() and not b.is_nan():
        line("cmp", (a, b), C.compare(a, b))
for (a,) in operands(1):
    line("sqrt", (a,), C.sqrt(a))
for (a,) in operands(1):
    if a.is_finite():
        for places in (0, 2, -1):
            r = C.quantize(a, Decimal((0, (1,), -places)))
            if not r.is_nan():
                line("round", (a, places), r)
for i in range(PER_OPERATION):
    a, b = abs(number(6, digits=random.choice([2, 5, 34]))), number(2, digits=random.choice([1, 2, 5, 30]))
    if a and b and a != 1:
        exact = MID.power(a, b)
        if exact.is_finite() and -6100 < exact.adjusted() < 6100:
            # Always 34 digits.
            r = C.plus(exact)
            line("pow", (a, b), r.quantize(Decimal((0, (1,), r.adjusted() - 33)), context=C))
for i in range(PER_OPERATION):
    x = random.choice([random.uniform(-10, 10), random.uniform(0, 1) * 10.0 ** random.randint(-300, 300), float(random.randint(0, 10**15))])
    line("from_f64", (repr(x),), Context(prec=34, traps=[]).create_decimal(Context(prec=15, traps=[]).create_decimal(x)) if x else Decimal(0))
