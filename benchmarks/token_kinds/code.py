"""Source of many languages, minified code, and what agents and people write around it."""

from __future__ import annotations

import json
from random import Random

from token_kinds.kind import (
    EXTENSIONS,
    PEOPLE,
    VERBS,
    Registry,
    alphanumeric,
    camel,
    date,
    decimal,
    number,
    pascal,
    path,
    repeated,
    sentence,
    snake,
    value,
    word,
    words,
)  # fmt: skip

KINDS = Registry()


def called(draw: Random) -> str:
    """Draw the name of a function."""
    return f"{draw.choice(VERBS)}_{snake(draw)}"


def camel_called(draw: Random) -> str:
    """Draw the name of a method."""
    return draw.choice(VERBS) + pascal(draw)


@KINDS.lines("source, Python", "\n\n")
def python(draw: Random) -> str:
    name, one, two = called(draw), snake(draw), snake(draw)
    return (
        f"    def {name}(self, {one}: str, *, {two}: int = {draw.randint(0, 9)}) -> {pascal(draw)} | None:\n"
        f'        """{sentence(draw)}"""\n'
        f"        if {one} not in self._{two}:\n"
        f'            raise {pascal(draw)}Error(f"{words(draw, 2, 5)} {{{one}!r}}")\n'
        f"        for {word(draw)}, {two} in enumerate(self.{one}.items()):\n"
        f"            self.{called(draw)}({two}, {one}={one})  # {words(draw, 3, 7)}\n"
        f"        return {pascal(draw)}({one}=[{two} for {two} in {one}], {two}={{}})"
    )


@KINDS.lines("source, Python of numbers", "\n")
def numeric(draw: Random) -> str:
    a, b = draw.choice("xyzabuvw"), draw.choice("ijknm")
    return f"{a}[{b}, :] = np.{draw.choice(('dot', 'sum', 'exp'))}({a}[{b}-1, 1:] * {decimal(draw)}) + {draw.randint(0, 9)}*{a}**2 / {b}"


@KINDS.lines("source, TypeScript", "\n\n")
def typescript(draw: Random) -> str:
    one, two = camel(draw), camel(draw)
    return (
        f"export async function {camel_called(draw)}({one}: {pascal(draw)}, {two}?: string): Promise<{pascal(draw)}[]> {{\n"
        f"  const {{ data, error }} = await {two}.{camel_called(draw)}({{ {one}, limit: {draw.randint(1, 99)} }});\n"
        f"  if (!data || error) throw new {pascal(draw)}Error(`{words(draw, 2, 4)} ${{{one}.id}}`);\n"
        f"  return data.map(({word(draw)}) => ({{ ...{word(draw)}, {two}: {one}?.{two} ?? null }}));\n}}"
    )


@KINDS.lines("source, React", "\n")
def react(draw: Random) -> str:
    return (
        f'      <{pascal(draw)} className="flex items-center px-{draw.randint(1, 9)} text-{word(draw)}-{draw.randint(1, 9)}00" on{pascal(draw)}={{() => set{pascal(draw)}(!{camel(draw)})}}>\n'
        f"        {{{camel(draw)}.map((item) => <li key={{item.id}}>{{item.{camel(draw)}}}</li>)}}\n"
        f"      </{pascal(draw)}>"
    )


@KINDS.lines("source, Java", "\n\n")
def java(draw: Random) -> str:
    one = camel(draw)
    return (
        f"    @Override\n    public final Map<String, List<{pascal(draw)}>> {camel_called(draw)}(final {pascal(draw)} {one}) throws IOException {{\n"
        f'        if ({one} == null || {one}.isEmpty()) {{\n            throw new IllegalArgumentException("{words(draw, 2, 6)}");\n        }}\n'
        f"        return this.{camel(draw)}.stream().filter(x -> x.{camel_called(draw)}()).collect(Collectors.toList());\n    }}"
    )


@KINDS.lines("source, Go", "\n\n")
def go(draw: Random) -> str:
    one = camel(draw)
    return (
        f"func (s *{pascal(draw)}) {pascal(draw)}(ctx context.Context, {one} string) (*{pascal(draw)}, error) {{\n"
        f'\tif err := s.{camel(draw)}.{pascal(draw)}(ctx, {one}); err != nil {{\n\t\treturn nil, fmt.Errorf("{words(draw, 2, 5)}: %w", err)\n\t}}\n'
        f'\tfor i, {word(draw)} := range s.{camel(draw)} {{\n\t\tlog.Printf("%d %v", i, {one})\n\t}}\n\treturn &{pascal(draw)}{{}}, nil\n}}'
    )


@KINDS.lines("source, Rust", "\n\n")
def rust(draw: Random) -> str:
    one = snake(draw)
    return (
        f"    pub fn {called(draw)}<'a, T: Into<{pascal(draw)}>>(&'a mut self, {one}: Option<&str>) -> Result<Vec<T>, {pascal(draw)}Error> {{\n"
        f'        let {one} = {one}.ok_or_else(|| {pascal(draw)}Error::{pascal(draw)}("{words(draw, 2, 4)}".into()))?;\n'
        f"        match self.{snake(draw)}.get(&{one}) {{\n            Some(x) if x.len() > {draw.randint(0, 9)} => Ok(x.iter().cloned().collect()),\n            _ => unimplemented!(),\n        }}\n    }}"
    )


@KINDS.lines("source, C", "\n\n")
def c(draw: Random) -> str:
    one = snake(draw)
    return (
        f"static int {called(draw)}(struct {snake(draw)} *{one}, const char *name, size_t n)\n{{\n\tint i, ret = -EINVAL;\n\n"
        f"\tif (!{one} || !{one}->{snake(draw)})\n\t\treturn -ENOMEM;\n\tfor (i = 0; i < n; i++)\n\t\t{one}->buf[i] ^= 0x{draw.randint(0, 255):02x} << {draw.randint(1, 9)};\n"
        f'\tpr_err("%s: {words(draw, 2, 4)} %d\\n", __func__, ret);\n\treturn ret;\n}}'
    )


@KINDS.lines("source, C++", "\n\n")
def cpp(draw: Random) -> str:
    return (
        f"template <typename T, class Alloc = std::allocator<T>>\nauto {pascal(draw)}<T>::{camel_called(draw)}(const std::vector<T>& {camel(draw)}) noexcept -> std::unique_ptr<{pascal(draw)}> {{\n"
        f"    std::for_each({camel(draw)}.begin(), {camel(draw)}.end(), [&](auto&& x) {{ m_{camel(draw)} += static_cast<int>(x); }});\n    return std::make_unique<{pascal(draw)}>();\n}}"
    )


@KINDS.lines("source, macros of C")
def macros(draw: Random) -> str:
    return f"#define {snake(draw).upper()}_{word(draw).upper()}(x, y)\t((x) << {draw.randint(1, 31)} | (y) & 0x{draw.randint(0, 65535):04X}) \\"


@KINDS.lines("source, SQL", ";\n\n")
def sql(draw: Random) -> str:
    return (
        f"SELECT t.{snake(draw)}, COUNT(*) AS {snake(draw)}, MAX(o.created_at)\nFROM {snake(draw)} t\nLEFT JOIN {snake(draw)} o ON o.{snake(draw)}_id = t.id\n"
        f"WHERE t.{snake(draw)} = '{word(draw)}' AND o.{snake(draw)} IS NOT NULL\nGROUP BY 1, 2\nHAVING COUNT(*) > {draw.randint(1, 99)}\nORDER BY 2 DESC LIMIT {draw.randint(1, 999)}"
    )


@KINDS.lines("source, INSERT of SQL")
def inserts(draw: Random) -> str:
    return f"INSERT INTO `{snake(draw)}` VALUES ({draw.randint(1, 9999)},'{word(draw)}',{decimal(draw)},NULL,'{date(draw)}','{words(draw, 1, 4)}');"


@KINDS.lines("source, shell")
def shell(draw: Random) -> str:
    return draw.choice((
        f'if [[ -z "${{{snake(draw).upper()}:-}}" ]]; then echo "{words(draw, 2, 5)}" >&2; exit 1; fi',
        f"for f in $(find {path(draw)} -name '*.{draw.choice(EXTENSIONS)}' | sort -u); do sed -i 's/{word(draw)}/{word(draw)}/g' \"$f\"; done",
        f"export {snake(draw).upper()}=$({word(draw)} --{word(draw)} {path(draw)} | awk '{{print ${draw.randint(1, 9)}}}')",
        f"curl -sSL -H 'Authorization: Bearer {alphanumeric(draw, 20)}' https://{word(draw)}.example.com/v1/{snake(draw)} | jq -r '.[].{snake(draw)}'",
    ))  # fmt: skip


@KINDS.lines("source, Ruby", "\n\n")
def ruby(draw: Random) -> str:
    return f'  def {called(draw)}({snake(draw)}, {snake(draw)}: nil)\n    @{snake(draw)} ||= {pascal(draw)}.where({snake(draw)}: :{word(draw)}).find_each do |{word(draw)}|\n      puts "#{{{snake(draw)}}} {words(draw, 1, 4)}" unless {snake(draw)}.nil?\n    end\n  end'


@KINDS.lines("source, PHP", "\n\n")
def php(draw: Random) -> str:
    return f"    public function {camel_called(draw)}(array ${camel(draw)} = []): ?{pascal(draw)}\n    {{\n        $this->{camel(draw)}->{camel(draw)}(['{snake(draw)}' => ${camel(draw)}['{word(draw)}'] ?? null]);\n        return $this->{camel(draw)};\n    }}"


@KINDS.lines("source, Haskell")
def haskell(draw: Random) -> str:
    return f"{camel(draw)} :: (Monad m, Ord a) => [a] -> Map k (Maybe {pascal(draw)}) -> m ()\n{camel(draw)} xs = foldr (\\x acc -> x `seq` acc <> {camel(draw)} x) mempty . filter (>= {draw.randint(0, 9)}) $ xs"


@KINDS.lines("source, Lisp")
def lisp(draw: Random) -> str:
    return f"(defun {word(draw)}-{word(draw)} ({word(draw)} &optional {word(draw)})\n  (let ((x (car {word(draw)})) (y '({word(draw)} . {draw.randint(0, 9)})))\n    (cond ((null x) nil) (t (mapcar #'1+ (cdr y))))))"


@KINDS.lines("source, Swift and Kotlin", "\n\n")
def swift(draw: Random) -> str:
    return f"    func {camel_called(draw)}(_ {camel(draw)}: {pascal(draw)}? = nil) async throws -> [{pascal(draw)}] {{\n        guard let x = {camel(draw)}, !x.{camel(draw)}.isEmpty else {{ return [] }}\n        return try await x.{camel(draw)}.compactMap {{ $0.{camel(draw)} as? {pascal(draw)} }}\n    }}"


@KINDS.lines("source, CSS", "\n")
def css(draw: Random) -> str:
    return f".{word(draw)}-{word(draw)}:hover > .{word(draw)} {{\n  margin: {draw.randint(0, 40)}px auto 0 -{draw.random():.2f}rem;\n  color: #{draw.randrange(1 << 24):06x};\n  transition: all .{draw.randint(1, 9)}s ease-in-out;\n}}"


@KINDS.lines("source, CSS minified", "")
def css_minified(draw: Random) -> str:
    return f".{word(draw)}{{margin:0 {draw.randint(0, 40)}px;color:#{draw.randrange(1 << 12):03x};flex:1 1 auto}}@media(max-width:{draw.randint(300, 1600)}px){{.{word(draw)[:2]}{{display:none}}}}"


@KINDS.lines("source, JavaScript minified", "")
def minified(draw: Random) -> str:
    a, b, c, d = (draw.choice("abcdefghijklmnoprstuvwxyzABCEFTX$_") for _ in range(4))
    return draw.choice((
        f"function {a}({b},{c}){{return {b}&&{c}.{camel(draw)}?{b}.{camel(draw)}({c}):void 0}}",
        f"var {a}=new {b}({c}),{d}=[];for(;{a}--;){d}.push({b}[{a}]^{draw.randint(0, 255)});",
        f"const {a}=async({b})=>{{await {c}({b}),{d}||({d}=!0)}};",
        f"!function(){{\"use strict\";{a}.{camel(draw)}=({b},{c})=>{b}.{camel(draw)}+{c}}}();",
        f"e.exports={{{a}:{b},{c}:{d},{word(draw)}:!{draw.randint(0, 1)}}},",
    ))  # fmt: skip


@KINDS.lines("source map", "")
def source_map(draw: Random) -> str:
    return "".join(
        draw.choices("AACAEAGAIAKAMASUWYQOCDEFgBkBsB", k=draw.randint(4, 7))
    ) + draw.choice(",;,,")


@KINDS.lines("source, Fortran and COBOL")
def fortran(draw: Random) -> str:
    return draw.choice((
        f"      SUBROUTINE {word(draw).upper()}{draw.randint(1, 9)}(N, X, INCX, {word(draw).upper()})",
        f"           MOVE {word(draw).upper()}-{word(draw).upper()} TO {word(draw).upper()}-REC.",
        f"      DO {draw.randint(10, 990)} I = 1, N\n         X(I) = X(I) + {draw.random():.3f}D0",
    ))  # fmt: skip


@KINDS.lines("source, R and Julia")
def r_source(draw: Random) -> str:
    return f"{word(draw)}.{word(draw)} <- {word(draw)} %>% group_by({word(draw)}) %>% summarise({snake(draw)} = mean({word(draw)}, na.rm = TRUE))"


@KINDS.lines("source, Dockerfile and Makefile")
def docker(draw: Random) -> str:
    return draw.choice((
        f"RUN apt-get update && apt-get install -y --no-install-recommends {word(draw)}-{word(draw)} && rm -rf /var/lib/apt/lists/*",
        f"COPY --from=builder --chown=app:app /{path(draw)} /{path(draw)}",
        f"$(OBJ)/{snake(draw)}.o: {path(draw)} | $(BIN)\n\t$(CC) $(CFLAGS) -c -o $@ $<",
        f"ENV {snake(draw).upper()}={number(draw)} \\",
    ))  # fmt: skip


@KINDS.lines("source, Terraform")
def terraform(draw: Random) -> str:
    return f'resource "aws_{snake(draw)}" "{snake(draw)}" {{\n  {snake(draw):<16} = var.{snake(draw)}\n  {snake(draw):<16} = ["${{aws_{snake(draw)}.{word(draw)}.arn}}/*"]\n}}\n'


@KINDS.lines("source, Verilog")
def verilog(draw: Random) -> str:
    return f"  always @(posedge clk) if (rst) {snake(draw)} <= {draw.randint(1, 64)}'h{draw.randint(0, 65535):x}; else {snake(draw)}[{draw.randint(8, 31)}:{draw.randint(0, 7)}] <= ~{word(draw)} & {word(draw)};"


@KINDS.lines("source, Solidity and types")
def types(draw: Random) -> str:
    return f"type {pascal(draw)}<T> = {{ [K in keyof T as `{word(draw)}${{Capitalize<K>}}`]?: T[K] extends infer U ? Readonly<U>[] : never }} & {pascal(draw)};"


@KINDS.lines("imports")
def imports(draw: Random) -> str:
    return draw.choice((
        f"from {snake(draw)}.{word(draw)} import {camel(draw)}, {pascal(draw)}",
        f"import {{ {pascal(draw)}, {camel(draw)} }} from '@{word(draw)}/{word(draw)}-{word(draw)}';",
        f"#include <{snake(draw)}/{word(draw)}.h>", f"use {snake(draw)}::{{{pascal(draw)}, {snake(draw)}}};",
    ))  # fmt: skip


@KINDS.lines("closing brackets")
def closing(draw: Random) -> str:
    return " " * draw.randint(0, 16) + "".join(draw.choices(")}];,>", k=draw.randint(1, 5)))


@KINDS.lines("assignments of one letter")
def assignments(draw: Random) -> str:
    return f"{draw.choice('abcxyz')} = {draw.choice('abcxyz0123')} {draw.choice('+-*/%&|^')} {draw.choice('abcxyz0123')}"


@KINDS.lines("calls with numbers", " ")
def number_calls(draw: Random) -> str:
    return f"{word(draw)}({draw.randint(0, 99)}, {draw.randint(0, 9)});"


@KINDS.lines("prose, capitals")
def loud(draw: Random) -> str:
    return sentence(draw).upper()


@KINDS.lines("prose, titles")
def titles(draw: Random) -> str:
    return words(draw, 3, 9).title()


@KINDS.lines("prose, random words", " ")
def random_words(draw: Random) -> str:
    return word(draw)


@KINDS.lines("prose, sentences", " ")
def sentences(draw: Random) -> str:
    return sentence(draw)


@KINDS.lines("prose, slips of typing", " ")
def slips(draw: Random) -> str:
    letters = list(word(draw))
    place = draw.randrange(len(letters))
    if draw.random() < 0.75:
        return "".join(letters)
    letters[place] = draw.choice("abcdefghijklmnopqrstuvwxyz")
    return "".join(letters)


@KINDS.lines("prose, mixed case", " ")
def mixed_case(draw: Random) -> str:
    return "".join(draw.choice((letter.upper(), letter)) for letter in word(draw))


@KINDS.lines("prose, digits for letters", " ")
def digits_for_letters(draw: Random) -> str:
    return word(draw).translate(str.maketrans("aeiost", "431057"))


@KINDS.lines("prose, stretched", " ")
def stretched(draw: Random) -> str:
    return "".join(letter * draw.choice((1, 1, 1, 4)) for letter in word(draw)) + draw.choice(
        ("", "!!!", "...")
    )


@KINDS.lines("prose, word by word in brackets", " ")
def bracketed(draw: Random) -> str:
    return draw.choice(
        ("[{}]", "({})", "<{}>", '"{}"', "*{}*", "_{}_", "`{}`", "'{}'", "{{{}}}")
    ).format(word(draw))


@KINDS.lines("prose, words and slashes", "/")
def slashes(draw: Random) -> str:
    return word(draw)


@KINDS.lines("words with commas", ",")
def commas(draw: Random) -> str:
    return word(draw)


@KINDS.lines("names of people", ", ")
def people(draw: Random) -> str:
    return (
        f"{draw.choice(PEOPLE)} {word(draw).title()}{draw.choice(('son', 'er', 'ski', 'ez', 'ov'))}"
    )


@KINDS.lines("Markdown", "\n\n")
def markdown(draw: Random) -> str:
    return draw.choice((
        f"{'#' * draw.randint(1, 4)} {words(draw, 1, 5).title()}",
        f"- **{words(draw, 1, 2)}**: {sentence(draw)}\n- `{snake(draw)}`: {sentence(draw)}",
        f"> {sentence(draw)}", f"[{words(draw, 1, 3)}](https://example.org/{path(draw)}) {sentence(draw)}",
        f"```python\n{snake(draw)} = {snake(draw)}({number(draw)})\n```", f"{sentence(draw)} {sentence(draw)}",
        f"{draw.randint(1, 9)}. {sentence(draw)}", "---",
    ))  # fmt: skip


@KINDS.lines("chat")
def chat(draw: Random) -> str:
    return f"[{draw.randint(0, 23):02}:{draw.randint(0, 59):02}] <{draw.choice(PEOPLE)}> {words(draw, 1, 9)}"


@KINDS.lines("calls of tools")
def calls(draw: Random) -> str:
    arguments = json.dumps({snake(draw): value(draw), snake(draw): draw.randint(0, 99)})
    return json.dumps(
        {
            "id": f"call_{alphanumeric(draw, 24)}",
            "type": "function",
            "function": {"name": called(draw), "arguments": arguments},
        }
    )


@KINDS.lines("tags of a prompt")
def prompt_tags(draw: Random) -> str:
    name = snake(draw)
    return f"<{name}>\n{sentence(draw)}\n</{name}>"


@KINDS.text("notebook")
def notebook(draw: Random, size: int) -> str:
    cells = []
    while sum(len(str(cell)) for cell in cells) < size:
        source = [f"{snake(draw)} = {snake(draw)}({number(draw)})\n" for _ in range(3)]
        cells.append(
            {
                "cell_type": "code",
                "execution_count": draw.randint(1, 99),
                "metadata": {},
                "outputs": [],
                "source": source,
            }
        )
    return json.dumps({"cells": cells}, indent=1)


@KINDS.lines("schemas of tools")
def schemas(draw: Random) -> str:
    properties = {
        snake(draw): {"type": draw.choice(("string", "integer")), "description": sentence(draw)}
        for _ in range(3)
    }
    return json.dumps(
        {
            "name": called(draw),
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(properties),
            },
        }
    )


@KINDS.text("everything by turns")
def everything(draw: Random, size: int) -> str:
    makers = [
        python,
        typescript,
        c,
        sql,
        shell,
        css,
        minified,
        markdown,
        calls,
        sentences,
        titles,
        loud,
        closing,
    ]
    return repeated(draw, size, lambda draw: draw.choice(makers)(draw))
