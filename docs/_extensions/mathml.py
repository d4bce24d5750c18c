"""Formulas as MathML, which browsers draw themselves: neither the build nor the reader needs a network or a script."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def _mathml(text, display):
    converted = convert(text, display=display)
    if "\\" in converted or ">&<" in converted:  # what the converter does not know is left as it is
        raise ExtensionError(f"latex2mathml does not understand {text!r}")
    return converted


def visit_inline(self, node):
    self.body.append(f'<span class="formula">{_mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self, node):
    r"""Formulas that blank lines part are parts of one block; lines that ``\\`` parts are aligned at ``&``."""
    formulas = [formula for formula in node.astext().split("\n\n") if formula.strip()]
    for n, formula in enumerate(formulas):
        if "\\\\" in formula and "\\begin" not in formula:
            formulas[n] = rf"\begin{{split}}{formula}\end{{split}}"
    converted = "".join(_mathml(formula, "block") for formula in formulas)
    self.body.append(self.starttag(node, "div", converted, CLASS="formula") + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
