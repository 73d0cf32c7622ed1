"""How the documentation is built: `make docs`. The site makes no network request."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

from symbayes import __version__

project = "symbayes"
author = copyright = "The symbayes developers"
release = __version__
exclude_patterns = ["_build"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
default_role = "code"

# Types stand in the docstrings, in words; as signatures they would be links to elsewhere.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "furo"
html_title = f"symbayes {release}"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["symbayes.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Have formulas written as MathML, which browsers show without a script from elsewhere."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode
