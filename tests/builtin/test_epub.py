"""The texts of EPUB books and of HTML."""

from svc.builtin.epub import epub, html_text
from tests.support.office_files import zipped


def test_epub_has_its_chapters_in_reading_order() -> None:
    spine = (
        '<item id="b" href="b.xhtml"/><item id="a" href="a%20a.xhtml"/><item id="n" properties="nav" href="n.xhtml"/>'
    )
    order = '<itemref idref="n"/><itemref idref="a"/><itemref idref="b"/>'
    content = zipped(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="o/p.opf"/></rootfiles></container>',
            "o/p.opf": f"<package><manifest>{spine}</manifest><spine>{order}</spine></package>",
            "o/a a.xhtml": "<!DOCTYPE html><html><head><title>x</title></head><body><h1>One</h1><p>first</p></body></html>",
            "o/b.xhtml": "<html><body><p>second</p></body></html>",
            "o/n.xhtml": "<html><body>contents</body></html>",
        }
    )
    (page,) = epub(content) or []
    assert page.text == "# One\n\nfirst\n\nsecond"


def test_cells_of_a_row_are_in_one_line_also_with_paragraphs_in_them() -> None:
    rows = "<tr><td><p>a</p></td>\n<td>\n<p>b</p></td></tr>\n<tr><th>c</th> <td><p>d</p><p>e</p></td></tr>"
    assert html_text(f"<p>first</p><table>{rows}</table><p>last</p>") == "first\n\na\tb\n\nc\td\n\ne\n\nlast"


def test_html_has_no_scripts_and_keeps_preformatted_lines() -> None:
    html = "<html><head><style>x</style></head><body><script>y</script><p>a\n b</p><pre>c\n d</pre></body>"
    assert html_text(html) == "a b\n\nc\nd"
