"""A report's page in Chromium: headings sort, films are started together."""

from termdp.pages import Page, Table

ROWS = [["PG", "−1.5 ± 2"], ["TermPG", "10.2 ± 1"], ["Oracle", "–"], ["RS", "9.0 ± 1"]]


def test_a_click_on_a_heading_sorts(browser, tmp_path):
    page = Page("Title", "lead")
    page.table(Table("Scores", "Read so.", ["", "return"], ROWS))
    page.films([(b"GIF89a", "left"), (b"GIF89a", "right")])
    page.save(tmp_path / "page.html")
    tab = browser.new_page()
    problems = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto((tmp_path / "page.html").as_uri())

    def order():
        return tab.locator("tbody td:first-child").all_inner_texts()

    tab.get_by_role("button", name="return").click()
    assert order() == ["TermPG", "RS", "PG", "Oracle"]
    tab.get_by_role("button", name="return").click()
    assert order() == ["PG", "RS", "TermPG", "Oracle"]
    tab.get_by_role("button", name="name").click()
    assert order() == ["TermPG", "RS", "PG", "Oracle"]
    sources = tab.locator("img").evaluate_all("films => films.map(film => film.src)")
    tab.get_by_role("button", name="Watch again").click()
    again = tab.locator("img").evaluate_all("films => films.map(film => film.src)")
    assert sources == again and problems == []
    tab.close()
