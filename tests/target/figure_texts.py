"""Programs to which a figure of a target makes a difference: arguments, operations, results."""

from __future__ import annotations

SUM = """%y = loop.compute {} -> reduce(sum, f32) {{
  %a = loop.read %x[{}] : f32 loop.yield %a }} : {}"""
CHECKED = """%ok = loop.compute red(i0: 20) -> reduce(all, i1) { %a = loop.read %k[i0] : i64
  %b = arith.constant 40 : i64 %c = arith.cmpi ult, %a, %b : i64 loop.yield %c } : i1[]
%t = graph.item %ok : (i1[]) -> i1
sym.assert_value %t {error = "IndexError", message = "out of bounds"} : (i1)
%y = loop.compute par(i0: 20, i1: 4000) -> map { %d = loop.read %k[i0] : i64
  %e = arith.index_cast %d : i64 to index
  %f = loop.read %x[%e, i1] : f32 loop.yield %f } : f32[20, 4000]"""
LINES = "%x: f32[{0}, {1}], %a: f32[{0}], %b: f32[{0}]"
LINE = """%y = loop.compute par(i0: {0}, i1: {1}) -> map {{ %c = loop.read %x[i0, i1] : f32
  %d = loop.read %a[i0] : f32 %e = loop.read %b[i0] : f32 %f = arith.mulf %c, %d : f32
  %g = arith.addf %f, %e : f32 loop.yield %g }} : f32[{0}, {1}]"""
PRODUCT = """%y = loop.compute par(i0: {rows}, i1: {columns}) red(i2: {depth})
  -> reduce(sum, f32) {{
  %a = loop.read %x[i0, i2] : {type} %b = loop.read %{w}[i2, i1] : {type} {casts}
  %e = arith.mulf {factors} : f32 loop.yield %e }} : f32[{rows}, {columns}]"""
CASTS = "%c = arith.extf %a : f16 to f32 %d = arith.extf %b : f16 to f32"
PROLOGUE = """%v = loop.compute par(i0: {depth}, i1: {columns}) -> map {{
  %o = loop.read %w[i0, i1] : {type} %s = math.sin %o : {type}
  loop.yield %s }} : {type}[{depth}, {columns}] """


def product(rows: int, depth: int, columns: int, type_: str, before: str = "") -> tuple[str, ...]:
    """Arguments, body and results of a product of two matrices."""
    casts, factors = (CASTS, "%c, %d") if type_ == "f16" else ("", "%a, %b")
    body = (before + PRODUCT).format(
        rows=rows, columns=columns, depth=depth, type=type_, w="v" if before else "w", casts=casts,
        factors=factors,
    )  # fmt: skip
    arguments = f"%x: {type_}[{rows}, {depth}], %w: {type_}[{depth}, {columns}]"
    return arguments, body, f"%y: f32[{rows}, {columns}]"


def few_rows(depth: int) -> tuple[str, ...]:
    """The same of eight rows and a weight of 32768."""
    body = PRODUCT.format(rows=8, columns=32768, depth=depth, type="f16", w="w", casts=CASTS,
                          factors="%c, %d")  # fmt: skip
    body = body.replace("%w[i2, i1]", "%w[i1, i2]").replace("f32[8, 32768]", "f16[8, 32768]")
    return f"%x: f16[8, {depth}], %w: f16[32768, {depth}]", body, "%y: f16[8, 32768]"


def softmax(
    x: str, place: str, rows: int, points: int, stored: str = "%q"
) -> tuple[str, str, str]:
    """A group that makes the softmax of rows (stored: `%q`), or the sums of powers (`%s`)."""
    result = {"%q": f"f32[{rows}, {points}]", "%s": f"f32[{rows}]"}[stored]
    element = "%a = loop.read %x[PLACE] : f32"
    if x.startswith("bf16"):
        element = "%h = loop.read %x[PLACE] : bf16 %a = arith.extf %h : bf16 to f32"
        result = result.replace("f32", "bf16")
    text = f"""%y = loop.group (i: {rows}) {{
      %m = loop.compute par(i: {rows}) red(j: {points}) -> reduce(max, f32) {{
        {element} loop.yield %a }} : f32[{rows}]
      %e, %s = loop.compute par(i: {rows}) red(j: {points}) -> map, reduce(sum, f32) {{
        {element} %b = loop.read %m[i] : f32
        %d = arith.subf %a, %b : f32 %p = math.exp %d {{nonpositive}} : f32
        loop.yield %p, %p }} : f32[{rows}, {points}], f32[{rows}]"""
    if stored == "%q":
        rounded = "%r = arith.truncf %d : f32 to bf16 loop.yield %r" if "bf16" in result else (
            "loop.yield %d")  # fmt: skip
        text += f"""
      %q = loop.compute par(i: {rows}, j: {points}) -> map {{
        %a = loop.read %e[i, j] : f32 %b = loop.read %s[i] : f32
        %d = arith.divf %a, %b : f32 {rounded} }} : {result}"""
    text += f" loop.yield {stored} }} : {result}"
    return f"%x: {x}", text.replace("PLACE", place), f"%y: {result}"


def totals(x: str, place: str, axes: tuple[int, int, int]) -> tuple[str, str, str]:
    """A group that divides what rows have, of two axes, by its sum."""
    rows, outer, inner = axes
    result = f"f32[{rows}, {outer}, {inner}]"
    text = f"""%y = loop.group (i0: {rows}) {{
      %m = loop.compute par(i0: {rows}) red(i1: {outer}, i2: {inner}) -> reduce(sum, f32) {{
        %a = loop.read %x[{place}] : f32 loop.yield %a }} : f32[{rows}]
      %q = loop.compute par(i0: {rows}, i1: {outer}, i2: {inner}) -> map {{
        %a = loop.read %x[{place}] : f32 %b = loop.read %m[i0] : f32
        %d = arith.divf %a, %b : f32 loop.yield %d }} : {result} loop.yield %q }} : {result}"""
    return f"%x: {x}", text, f"%y: {result}"


TEXTS = {
    "many longer rows": softmax("f32[300, 65536]", "i, j", 300, 65536),
    "rows with few sums": (
        "%x: f32[8, 32, 4096], %w: f32[8, 32]", """%y = loop.group (i0: 8) {
          %m = loop.compute par(i0: 8) red(i1: 32) -> reduce(sum, f32) {
            %a = loop.read %w[i0, i1] : f32 loop.yield %a } : f32[8]
          %q = loop.compute par(i0: 8, i1: 32, i2: 4096) -> map {
            %a = loop.read %x[i0, i1, i2] : f32 %b = loop.read %m[i0] : f32
            %c = arith.mulf %a, %b : f32 loop.yield %c } : f32[8, 32, 4096]
          loop.yield %q } : f32[8, 32, 4096]""", "%y: f32[8, 32, 4096]"),
    "rows that cross memory": totals("f32[200, 4096, 32]", "i0, i2, i1", (200, 32, 4096)),
    "narrow rows": totals("f32[65536, 128]", "i2, i0*4 + i1", (32, 4, 65536)),
    "a product of parts": (
        "%x: f32[96, 512], %w: f32[64, 512]",
        "%y = loop.compute par(i0: 96, i1: 64) red(i2: 512) -> reduce(sum, f32) "
        'schedule #loop.schedule<cpu, products = "bf16x6"> { %a = loop.read %x[i0, i2] : f32 '
        "%b = loop.read %w[i1, i2] : f32 %c = arith.mulf %a, %b : f32 loop.yield %c } : "
        "f32[96, 64]", "%y: f32[96, 64]"),
    "images at places of tables": (
        "%x: f32[64, 32, 32], %r: i64[64], %c: i64[64]",
        "%y = loop.compute par(i0: 64, i1: 64, i2: 64) -> map { %one = arith.constant 1 : i64 "
        "%a = loop.read %r[i1] : i64 %b = arith.index_cast %a : i64 to index "
        "%d = loop.read %c[i2] : i64 %e = arith.index_cast %d : i64 to index "
        "%g = arith.addi %a, %one : i64 %h = arith.index_cast %g : i64 to index "
        "%i = arith.addi %d, %one : i64 %j = arith.index_cast %i : i64 to index "
        "%k = loop.read %x[i0, %b, %e] : f32 %l = loop.read %x[i0, %b, %j] : f32 "
        "%m = loop.read %x[i0, %h, %e] : f32 %n = loop.read %x[i0, %h, %j] : f32 "
        "%o = arith.mulf %k, %l : f32 %p = arith.mulf %m, %n : f32 %q = arith.mulf %o, %p : f32 "
        "%s = arith.divf %q, %k : f32 %t = arith.divf %s, %l : f32 %u = arith.divf %t, %m : f32 "
        "loop.yield %u } : f32[64, 64, 64]",
        "%y: f32[64, 64, 64]"),
    "a window's weights": (
        "%x: f32[256, 256, 3, 3]", "%y = loop.compute par(i0: 256, i1: 3, i2: 3, i3: 256) -> map { "
        "%a = loop.read %x[i0, i3, i1, i2] : f32 loop.yield %a } : f32[256, 3, 3, 256]",
        "%y: f32[256, 3, 3, 256]"),
    "long columns": (
        "%x: f32[8192, 8192]", SUM.format("red(i0: 8192) par(i1: 8192)", "i0, i1", "f32[8192]"),
        "%y: f32[8192]"),
    "columns of two arrays": (
        "%x: f32[8192, 768], %z: f32[8192, 768]",
        "%y = loop.compute red(i0: 8192) par(i1: 768) -> reduce(sum, f32) { "
        "%a = loop.read %x[i0, i1] : f32 %c = loop.read %z[i0, i1] : f32 "
        "%b = arith.mulf %a, %c : f32 loop.yield %b } : f32[768]", "%y: f32[768]"),
    "columns of two axes": (
        "%x: f32[64, 20, 512]",
        SUM.format("red(i0: 64, i1: 20) par(i2: 512)", "i0, i1, i2", "f32[512]"), "%y: f32[512]"),
    "many columns": (
        "%x: f32[1000, 65536]", SUM.format("red(i0: 1000) par(i1: 65536)", "i0, i1", "f32[65536]"),
        "%y: f32[65536]"),
    "many odd columns": (
        "%x: f32[1000, 65537]", SUM.format("red(i0: 1000) par(i1: 65537)", "i0, i1", "f32[65537]"),
        "%y: f32[65537]"),
    "windows": (
        "%x: f32[9, 300000]", SUM.format("red(i0: 9) par(i1: 300000)", "i0, i1", "f32[300000]"),
        "%y: f32[300000]"),
    "lines of windows": (
        "%x: f32[600001]", "%y = loop.compute par(i0: 300000) red(i1: 3) -> reduce(max, f32) { "
        "%a = loop.read %x[i0*2 + i1] : f32 loop.yield %a } : f32[300000]", "%y: f32[300000]"),
    "short rows": (
        "%x: f32[1024, 128]", SUM.format("par(i0: 1024) red(i1: 128)", "i0, i1", "f32[1024]"),
        "%y: f32[1024]"),
    "short rows with weights": (
        "%x: f32[1024, 128], %w: f32[128]", "%y = loop.compute par(i0: 1024) red(i1: 128) -> "
        "reduce(sum, f32) { %a = loop.read %x[i0, i1] : f32 %b = loop.read %w[i1] : f32 "
        "%c = arith.mulf %a, %b : f32 loop.yield %c } : f32[1024]", "%y: f32[1024]"),
    "long rows of three": (
        "%x: f32[300, 16384], %u: f32[300, 16384], %v: f32[300, 16384]",
        "%y = loop.compute par(i0: 300) red(i1: 16384) -> reduce(sum, f32) { "
        "%a = loop.read %x[i0, i1] : f32 %b = loop.read %u[i0, i1] : f32 "
        "%c = loop.read %v[i0, i1] : f32 %d = arith.mulf %a, %b : f32 "
        "%e = arith.mulf %c, %d : f32 loop.yield %e } : f32[300]", "%y: f32[300]"),
    "long rows that are stored": (
        "%x: bf16[1056, 20001]", """%r = loop.group (i: 1056) {
          %m = loop.compute par(i: 1056) red(j: 20001) -> reduce(max, bf16) {
            %a = loop.read %x[i, j] : bf16 loop.yield %a } : bf16[1056]
          %y = loop.compute par(i: 1056, j: 20001) -> map { %b = loop.read %x[i, j] : bf16
            %c = loop.read %m[i] : bf16 %d = arith.subf %b, %c : bf16
            loop.yield %d } : bf16[1056, 20001]
          loop.yield %y } : bf16[1056, 20001]""", "%r: bf16[1056, 20001]"),
    "rows with weights": (
        "%x: bf16[9000, 1024], %w: bf16[1024]", """%r = loop.group (i: 9000) {
          %m = loop.compute par(i: 9000) red(j: 1024) -> reduce(max, bf16) {
            %a = loop.read %x[i, j] : bf16 loop.yield %a } : bf16[9000]
          %y = loop.compute par(i: 9000, j: 1024) -> map { %b = loop.read %x[i, j] : bf16
            %c = loop.read %m[i] : bf16 %d = loop.read %w[j] : bf16 %e = arith.subf %b, %c : bf16
            %f = arith.mulf %e, %d : bf16 loop.yield %f } : bf16[9000, 1024]
          loop.yield %y } : bf16[9000, 1024]""", "%r: bf16[9000, 1024]"),
    "many scattered points": (
        "%x: f32[2000000], %z: f32[2000000]", "%y = loop.compute par(i: 2000000) inits(%z) -> "
        "scatter(sum, [i]) { %a = loop.read %x[i] : f32 loop.yield %a } : f32[2000000]",
        "%y: f32[2000000]"),
    "scanned columns": (
        "%x: f32[5000, 640]", "%y = loop.compute scan(i0: 5000) par(i1: 640) -> scan(sum, f32) { "
        "%a = loop.read %x[i0, i1] : f32 loop.yield %a } : f32[5000, 640]", "%y: f32[5000, 640]"),
    "many scanned columns": (
        "%x: f32[64, 65536]", "%y = loop.compute scan(i0: 64) par(i1: 65536) -> scan(sum, f32) { "
        "%a = loop.read %x[i0, i1] : f32 loop.yield %a } : f32[64, 65536]", "%y: f32[64, 65536]"),
    "softmax of columns": softmax("f32[9000, 8192]", "j, i", 8192, 9000),
    "softmax of short columns": softmax("bf16[2000, 8192]", "j, i", 8192, 2000),
    "softmax of held columns": softmax("bf16[768, 8192]", "j, i", 8192, 768),
    "softmax of many short rows": softmax("bf16[20000, 97]", "i, j", 20000, 97),
    "softmax of long rows": softmax("f32[64, 65536]", "i, j", 64, 65536),
    "many odd rows": (
        "%x: bf16[32768, 197]", """%r = loop.group (i: 32768) {
          %m = loop.compute par(i: 32768) red(j: 197) -> reduce(max, bf16) {
            %a = loop.read %x[i, j] : bf16 loop.yield %a } : bf16[32768]
          %y = loop.compute par(i: 32768, j: 197) -> map { %b = loop.read %x[i, j] : bf16
            %c = loop.read %m[i] : bf16 %d = arith.subf %b, %c : bf16 loop.yield %d
          } : bf16[32768, 197] loop.yield %y } : bf16[32768, 197]""", "%r: bf16[32768, 197]"),
    "norm of odd rows": (
        "%x: bf16[20000, 765]", """%r = loop.group (i: 20000) {
          %m = loop.compute par(i: 20000) red(j: 765) -> reduce(sum, f32) {
            %a = loop.read %x[i, j] : bf16 loop.yield %a } : bf16[20000]
          %y = loop.compute par(i: 20000, j: 765) -> map { %b = loop.read %x[i, j] : bf16
            %c = loop.read %m[i] : bf16 %d = arith.subf %b, %c : bf16 loop.yield %d
          } : bf16[20000, 765] loop.yield %y } : bf16[20000, 765]""", "%r: bf16[20000, 765]"),
    "many short rows": (
        "%x: bf16[131072, 64]", """%r = loop.group (i: 131072) {
          %m = loop.compute par(i: 131072) red(j: 64) -> reduce(max, bf16) {
            %a = loop.read %x[i, j] : bf16 loop.yield %a } : bf16[131072]
          %y = loop.compute par(i: 131072, j: 64) -> map { %b = loop.read %x[i, j] : bf16
            %c = loop.read %m[i] : bf16 %d = arith.subf %b, %c : bf16 loop.yield %d
          } : bf16[131072, 64] loop.yield %y } : bf16[131072, 64]""", "%r: bf16[131072, 64]"),
    "sums of powers": softmax("f32[64, 30528]", "i, j", 64, 30528, "%s"),
    "sorted rows": (
        "%x: i64[64, 33]", "%y = loop.compute par(i0: 64) scan(i1: 33) -> scan(sort, i64) { "
        "%a = loop.read %x[i0, i1] : i64 loop.yield %a } : i64[64, 33]", "%y: i64[64, 33]"),
    "a product": product(4096, 256, 4096, "f16"),
    "a product of f32": product(4096, 256, 4096, "f32"),
    "a product of few rows of f32": product(512, 768, 768, "f32"),
    "a product of few rows": product(8, 256, 4096, "f16"),
    "a product of a weight": (
        "%x: f16[4096, 4096], %w: f16[8192, 4096]",
        PRODUCT.format(rows=4096, columns=8192, depth=4096, type="f16", w="w", casts=CASTS,
                       factors="%c, %d").replace("%w[i2, i1]", "%w[i1, i2]")
        .replace("f32[4096, 8192]", "f16[4096, 8192]"), "%y: f16[4096, 8192]"),
    "a product of few rows of a weight": few_rows(256),
    "a product of few deep rows of a weight": few_rows(4096),
    "a product of 8 bits": (
        "%x: f8E4M3FN[4096, 512], %w: f8E4M3FN[4096, 512]",
        PRODUCT.format(rows=4096, columns=4096, depth=512, type="f8E4M3FN", w="w",
                       casts=CASTS.replace("f16", "f8E4M3FN"),
                       factors="%c, %d").replace("%w[i2, i1]", "%w[i1, i2]")
        .replace("sum, f32)", 'sum, f32) schedule #loop.schedule<gpu, precision = "ieee">'),
        "%y: f32[4096, 4096]"),
    "a product with odd rows": (
        "%x: f16[2047, 768], %w: f16[50257, 768]",
        PRODUCT.format(rows=2047, columns=50257, depth=768, type="f16", w="w", casts=CASTS,
                       factors="%c, %d").replace("%w[i2, i1]", "%w[i1, i2]")
        .replace("f32[2047, 50257]", "f16[2047, 50257]"), "%y: f16[2047, 50257]"),
    "a product of odd rows": product(2047, 2048, 2047, "f16"),
    "a product of small tiles": product(512, 768, 768, "f16"),
    "a product and its functions": (
        "%x: f16[2048, 256], %w: f16[256, 2048]",
        "%y = loop.group (i0: 2048, i1: 2048) { "
        + PRODUCT.format(rows=2048, columns=2048, depth=256, type="f16", w="w", casts=CASTS,
                         factors="%c, %d").replace("%y", "%s") + """
  %m = loop.compute par(i0: 2048, i1: 2048) -> map { %u = loop.read %s[i0, i1] : f32
    %v = math.sin %u : f32 %z = math.cos %v : f32 loop.yield %z } : f32[2048, 2048]
  loop.yield %m : f32[2048, 2048] } : f32[2048, 2048]""", "%y: f32[2048, 2048]"),
    "a product of its sine": product(512, 256, 512, "f32", PROLOGUE),
    "a deep product": product(64, 2048, 64, "f32"),
    "a deep and narrow product": product(60, 2048, 8, "f32"),
    "a small product": product(64, 64, 64, "f32"),
    "a product without signs": (
        "%x: f32[64, 64], %w: f32[64, 64]", product(64, 64, 64, "f32")[1] + """
        %z = loop.compute par(i0: 64, i1: 64) -> map { %q = loop.read %y[i0, i1] : f32
          %s = math.absf %q : f32 loop.yield %s } : f32[64, 64]""", "%z: f32[64, 64]"),
    "a product of what lies along it": (
        "%x: f32[16, 256], %w: f32[64, 256]", "%y = loop.compute par(i0: 16, i1: 64) red(i2: 256) "
        "-> reduce(sum, f32) { %a = loop.read %x[i0, i2] : f32 %b = loop.read %w[i1, i2] : f32 "
        "%e = arith.mulf %a, %b : f32 loop.yield %e } : f32[16, 64]", "%y: f32[16, 64]"),
    "a product of many rows": (
        "%x: f32[256, 2048], %w: f32[768, 2048]", "%y = loop.compute par(i0: 256, i1: 768) "
        "red(i2: 2048) -> reduce(sum, f32) { %a = loop.read %x[i0, i2] : f32 %b = loop.read "
        "%w[i1, i2] : f32 %e = arith.mulf %a, %b : f32 loop.yield %e } : f32[256, 768]",
        "%y: f32[256, 768]"),
    "a product of some rows": (
        "%x: f32[8, 20, 64], %w: f32[64, 64]",
        "%y = loop.compute par(i: 8, j: 16, n: 64) red(k: 64) -> reduce(sum, f32) { "
        "%a = loop.read %x[i, j, k] : f32 %b = loop.read %w[k, n] : f32 "
        "%c = arith.mulf %a, %b : f32 loop.yield %c } : f32[8, 16, 64]", "%y: f32[8, 16, 64]"),
    "a product of bf16": (
        "%x: bf16[16, 64], %w: bf16[512, 64]", "%y = loop.compute par(i0: 16, i1: 512) red(i2: 64) "
        "-> reduce(sum, f32) { %a = loop.read %x[i0, i2] : bf16 %b = loop.read %w[i1, i2] : bf16 "
        "%c = arith.extf %a : bf16 to f32 %d = arith.extf %b : bf16 to f32 "
        "%e = arith.mulf %c, %d : f32 loop.yield %e } : f32[16, 512]", "%y: f32[16, 512]"),
    "a deep product of bf16": (
        "%x: bf16[64, 2048], %w: bf16[512, 2048]",
        "%y = loop.compute par(i0: 64, i1: 512) red(i2: 2048) -> reduce(sum, f32) { "
        "%a = loop.read %x[i0, i2] : bf16 %b = loop.read %w[i1, i2] : bf16 "
        "%c = arith.extf %a : bf16 to f32 %d = arith.extf %b : bf16 to f32 "
        "%e = arith.mulf %c, %d : f32 loop.yield %e } : f32[64, 512]", "%y: f32[64, 512]"),
    "a product of deep panels": (
        "%x: bf16[64, 2048], %w: bf16[4, 1024, 16, 2]",
        "%y = loop.compute par(i0: 64, i1: 64) red(i2: 2048) -> reduce(sum, f32) { "
        "%a = loop.read %x[i0, i2] : bf16 "
        "%b = loop.read %w[floordiv(i1, 16), floordiv(i2, 2), mod(i1, 16), mod(i2, 2)] : bf16 "
        "%c = arith.extf %a : bf16 to f32 %d = arith.extf %b : bf16 to f32 "
        "%e = arith.mulf %c, %d : f32 loop.yield %e } : f32[64, 64]", "%y: f32[64, 64]"),
    "a product of panels": (
        "%x: bf16[64, 64], %w: bf16[32, 32, 16, 2]",
        "%y = loop.compute par(i0: 64, i1: 512) red(i2: 64) -> reduce(sum, f32) { "
        "%a = loop.read %x[i0, i2] : bf16 "
        "%b = loop.read %w[floordiv(i1, 16), floordiv(i2, 2), mod(i1, 16), mod(i2, 2)] : bf16 "
        "%c = arith.extf %a : bf16 to f32 %d = arith.extf %b : bf16 to f32 "
        "%e = arith.mulf %c, %d : f32 loop.yield %e } : f32[64, 512]", "%y: f32[64, 512]"),
    "lines": (LINES.format(512, 3072), LINE.format(512, 3072), "%y: f32[512, 3072]"),
    "lines with little to spare": (
        LINES.format(512, 1100), LINE.format(512, 1100), "%y: f32[512, 1100]"),
    "places of maxima": (
        "%x: f32[256, 500], %p: i8[256, 500], %zeros: f32[256, 1000]",
        "%y = loop.compute par(i0: 256, i1: 500) inits(%zeros) -> scatter(sum, [i0, _0]) { "
        "%a = loop.read %x[i0, i1] : f32 %b = loop.read %p[i0, i1] : i8 "
        "%c = arith.extsi %b : i8 to i64 %d = loop.index {expression = #sym<i1>} : index "
        "%e = arith.index_cast %d : index to i64 %two = arith.constant 2 : i64 "
        "%f = arith.muli %e, %two : i64 %g = arith.addi %f, %c : i64 "
        "%one = arith.constant 1 : i64 %h = arith.subi %g, %one : i64 "
        "%zero = arith.constant 0 : i64 %i = arith.maxsi %h, %zero : i64 "
        "%j = arith.muli %i, %i : i64 %most = arith.constant 999 : i64 "
        "%l = arith.minsi %j, %most : i64 %k = arith.index_cast %l : i64 to index "
        "loop.yield %a extra(%k) } : f32[256, 1000]", "%y: f32[256, 1000]"),
    "checked rows": ("%x: f32[40, 4000], %k: i64[20]", CHECKED, "%y: f32[20, 4000]"),
}  # fmt: skip
