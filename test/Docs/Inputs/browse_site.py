"""Uses a site as a reader does, in a browser, and prints what is seen. With a folder behind the site: pictures of pages.

    browse_site.py SITE [PICTURES]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser import Browser  # noqa: E402

site = Path(sys.argv[1]).resolve().as_uri()
RESULTS = "[...document.querySelectorAll('.results a')].map(a => a.querySelector('b').textContent + ' | ' + a.querySelector('small').textContent)"
SHOWN = "!document.querySelector('.results').hidden"


def print_results(title):
    browser.wait(SHOWN)
    print(f"{title}:")
    for result in browser.evaluate(RESULTS)[:5]:
        print("  " + result)


def get_color(selector):
    return browser.evaluate(f"getComputedStyle(document.querySelector({selector!r})).color")


with Browser() as browser:
    browser.open(site + "/index.html#search=all_gather")
    print_results("linked search")
    print("marked:", browser.evaluate("document.querySelector('.results p mark').textContent"))

    browser.open(site + "/cookbook/zero.html")
    browser.press("/")
    browser.type("pipeline sched")
    print_results("typed search")
    browser.press("ArrowDown")
    print("chosen:", browser.evaluate("[...document.querySelectorAll('.results a')].findIndex(a => a.classList.contains('chosen'))"))
    wanted = browser.evaluate("document.querySelector('.results a.chosen').href")
    browser.press("Enter")
    browser.wait(f"location.href === {wanted!r} && document.readyState === 'complete'")
    print("the chosen page has its anchor:", browser.evaluate("Boolean(document.getElementById(decodeURIComponent(location.hash.slice(1))))"))
    browser.press("/")
    browser.type("zzzunknown")
    browser.wait(SHOWN + " && document.querySelector('.results .none')")
    print("none:", browser.evaluate("document.querySelector('.results').textContent"))
    browser.press("Escape")
    print("closed:", browser.evaluate("document.querySelector('.results').hidden"))

    browser.open(site + "/index.html")
    browser.click("main a[href='Tutorial.html']")
    browser.wait("location.pathname.endsWith('/Tutorial.html')")
    print("clicked:", browser.evaluate("document.title"))

    browser.open(site + "/cookbook/zero.html")
    print("coloured:", get_color("pre.stg .k") != get_color("pre.stg"), browser.evaluate("document.querySelector('pre.stg .k').textContent"))
    browser.evaluate("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}})")
    browser.evaluate("document.querySelector('pre.console').parentElement.querySelector('.copy').click()")
    browser.wait("window.copied")
    print("copied:", browser.evaluate("copied.split('\\n')[0]"))

    browser.open(site + "/cookbook/zero.html", dark=True)
    print("dark:", browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    for name in ("index", "language/Strategies", "library/parallel", "cookbook/zero", "library/flags"):
        browser.open(f"{site}/{name}.html", width=400)
        print(f"{name} at 400 pixels:", browser.evaluate("document.documentElement.scrollWidth"))
    print("menu:", browser.evaluate("document.querySelector('nav').checkVisibility()"), end=" ")
    browser.click(".menu")
    print(browser.evaluate("document.querySelector('nav').checkVisibility()"))

    for folder in sys.argv[2:]:
        for name in ("index", "language/Strategies", "library/parallel", "cookbook/zero", "Glossary", "Memory", "library/flags",
                     "Strategies", "source/stdlib/nn.stg", "index#search=all_gather"):
            for width in (1280, 400):
                for dark in (False, True):
                    page, _, anchor = name.partition("#")
                    browser.open(f"{site}/{page}.html{anchor and '#' + anchor}", width=width, dark=dark)
                    if anchor:
                        browser.wait(SHOWN)
                    file = f"{name.replace('/', '-').replace('#', '-').replace('=', '-')}-{width}{'-dark' if dark else ''}.png"
                    browser.take_screenshot(f"{folder}/{file}")
