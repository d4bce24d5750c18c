"""Sphinx settings. The build needs no network, and neither do its pages: no inventories of other projects, no scripts
from elsewhere, formulas as MathML."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "rankrls"
author = "the rankrls developers"
copyright = "the rankrls developers"
version = release = installed_version("rankrls")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "commands",
    "inherited",
    "mathml",
    "no_mail",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.zip"]
templates_path = ["_templates"]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"[\\/]plot_",  # the others are shown, not run
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1,
    "write_computation_times": False,  # that page has scripts from elsewhere
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

# every reference must be found, except to other projects: the build has no inventories of theirs
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(scipy|sklearn|concurrent|numpy|pandas|joblib)\..*")]

html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "rankrls"
html_static_path = ["_static"]
html_css_files = ["rankrls.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    # elsewhere code needs the width
    "secondary_sidebar_items": {"guide/*": ["page-toc"], "start": ["page-toc"], "api": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}  # it lists all pages itself
html_show_sourcelink = False
