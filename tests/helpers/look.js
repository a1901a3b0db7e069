// what a reader cannot read on a page, and how long it is
() => {
  const all = (s) => [...document.querySelectorAll(s)];
  const seen = (e) => e.getClientRects().length > 0 && e.offsetWidth > 0;
  const over = (e) => seen(e) && e.scrollWidth > e.clientWidth + 2;
  const text = (e) => e.innerText.trim();
  const start = (e) => text(e).slice(0, 60);
  const range = document.createRange();
  const beyond = (e) => {
    range.selectNodeContents(e);
    const right = e.getBoundingClientRect().right + 3;
    return text(e) && [...range.getClientRects()].some((r) => r.right > right);
  };
  const cells = all('main td, main th').filter(seen);
  const printed = cells.filter((e) => e.nextElementSibling && text(e.nextElementSibling) && beyond(e));
  const scrolls = (e) => /(auto|scroll)/.test(getComputedStyle(e).overflow);
  const boxes = all('main *').filter((e) => seen(e) && scrolls(e) && e.querySelector('tr'));
  const below = (box) => (r) => r.getBoundingClientRect().top > box.getBoundingClientRect().bottom - 4;
  const hidden = boxes.map((box) => [...box.querySelectorAll('tbody tr')].filter(below(box))).flat();
  const tables = all('main table, main .table-scroll').filter((e) => over(e) || (seen(e) && e.getBoundingClientRect().right > innerWidth + 1));
  const meet = (a, b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  // boxes of the words in an element; spaces at the end of a line hang over its edge
  const wordBoxes = (e) => {
    const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), rects = [];
    while (walk.nextNode()) {
      for (const word of walk.currentNode.data.matchAll(/\S+/g)) {
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].length);
        rects.push(...range.getClientRects());
      }
    }
    return rects;
  };
  const under = (button) => {
    const icon = button.querySelector('i').getBoundingClientRect();
    const line = button.closest('div.sourceCode, .code-copy-outer-scaffold').querySelector('pre code > span');
    return line && wordBoxes(line).some((r) => meet(r, icon));
  };
  const buttons = all('main .code-copy-button').filter((e) => seen(e) && e.querySelector('i'));
  const levels = all('main h1, main h2, main h3, main h4, main h5').filter(seen).map((e) => +e.tagName[1]);
  const code = all('main div.sourceCode');
  code.forEach((e) => (e.style.display = 'none'));
  const main = text(document.querySelector('main'));
  code.forEach((e) => (e.style.display = ''));
  const digits = (main.match(/(?<![\w.:/])\d*\.\d{5,}(?![\w.])/g) || []).filter((n) => !/^\d{4}\.\d{5}$/.test(n));
  return {
    height: document.documentElement.scrollHeight,
    width: innerWidth,
    folds: all('main details:not(.phone, .code-fold)').length,
    'printed over a neighbour': printed.map(start),
    'rows hidden in a box': hidden.map(start),
    'a table clipped': tables.map(start),
    'code under its button': buttons.filter(under).map((e) => start(e.closest('div.sourceCode, .code-copy-outer-scaffold'))),
    'code cut off': all('main pre').filter(over).map(start),
    'a cell of a letter': cells.filter((e) => text(e).length > 3 && e.offsetWidth < 30).map(start),
    'an image without words': all('main img').filter((e) => !e.alt).map((e) => e.src.slice(-40)),
    'raw text': main.match(/\\?@sec-|^:::.*|np\.float64\(|\(\?[:!=]|\[\^/gm) || [],
    'a number of many digits': digits,
    'a formula': all('main mjx-container[display="true"]').filter(over).concat(all('mjx-merror')).map(start),
    'a heading that jumps': levels.filter((n, i) => i && n > levels[i - 1] + 1).map(String),
  };
}
