"""Pages: what is put in comes out, escaped and without anything from elsewhere."""

import base64
import hashlib
from html.parser import HTMLParser

from termdp.pages import Cell, Page, Table

SVG = b'<svg width="200pt" height="100pt"></svg>'


class Tags(HTMLParser):
    """The tags that a page opens and leaves open."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def full_page():
    page = Page("A <b>title</b>", "what & why", wide=True)
    page.heading("One")
    page.paragraph("a < b")
    page.commands(["termdp envs", "termdp train a b"])
    page.findings(["first", "second > third"])
    page.facts([("commit", "`abc`"), ("time", "3 s")])
    page.table(Table("", "", ["", "x"], [["row", "1"]]))
    cells = [[Cell("PG"), Cell("8.0", "paper <8.2>", "better")]]
    page.table(Table("Scores", "Read so.", ["", "y"], cells))
    page.plot(SVG, "a drawing")
    page.figure(b"data", "png", "a picture")
    page.figures([(b"1", "gif", "left"), (b"2", "gif", "right")])
    return page


def test_a_page_is_well_formed_and_has_everything():
    text = full_page().html()
    tags = Tags(text)
    assert tags.open == []
    assert text.startswith("<!doctype html>")
    assert ("body", {"class": "wide"}) in tags.seen
    assert [tag for tag, _ in tags.seen].count("img") == 4
    assert "termdp envs\ntermdp train a b" in text
    assert '<td class="better">8.0 ▲<small>paper &lt;8.2&gt;</small></td>' in text
    assert "<td>row</td><td>1</td>" in text
    assert "<code>abc</code>" in text
    assert "<td>3 s</td>" in text


def test_text_is_escaped():
    text = full_page().html()
    assert "A &lt;b&gt;title&lt;/b&gt;" in text
    assert "what &amp; why" in text
    assert "second &gt; third" in text


def test_nothing_comes_from_elsewhere(tmp_path):
    full_page().save(tmp_path / "new" / "page.html")
    text = (tmp_path / "new" / "page.html").read_text()
    sources = [attrs["src"] for _, attrs in Tags(text).seen if "src" in attrs]
    assert all(source.startswith("data:image/") for source in sources)
    assert not {"script", "link"} & {tag for tag, _ in Tags(text).seen}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]


def test_headings_can_be_linked_to_and_are_listed():
    page = Page("Title", "lead", contents=True)
    page.heading("What it is")
    page.heading("What it is")
    text = page.html()
    assert '<h2 id="what-it-is">' in text and '<h2 id="what-it-is-2">' in text
    assert text.count('<a href="#what-it-is') == 2


def test_only_our_own_script_may_run():
    page = Page("Title", "lead")
    page.table(Table("", "", ["", "x"], [["a", "1"], ["b", "3"], ["c", "2"]]))
    text = page.html()
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert 'class=" sortable"' in text


def test_a_drawing_is_larger_than_printed():
    images = [attrs for tag, attrs in Tags(full_page().html()).seen if tag == "img"]
    assert images[0]["width"] == "330"
    assert "width" not in images[1]


def test_a_table_is_markdown_too():
    table = Table("Title", "Caption.", ["", "x"], [["a", Cell("1", "of 2", "worse")]])
    assert table.markdown().splitlines() == [
        "### Title",
        "",
        "Caption.",
        "",
        "|  | x |",
        "| --- | ---: |",
        "| a | 1 ▼ (of 2) |",
    ]
