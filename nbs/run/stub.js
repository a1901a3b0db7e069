// In each chapter: a Run button at its cells; the first click loads page.js
(cells, why, at, here, size) => {
  let page;
  const open = async (id) => {
    page ??= import(`${at}page.js`).then(async ({ Page }) => {
      const made = new Page(here, at);
      await made.open();
      return made;
    });
    const made = await page;
    made.run(made.cells.findIndex((cell) => cell.id === id));
  };
  for (const [id, lack] of Object.entries(cells)) {
    const cell = document.getElementById(id), code = cell?.querySelector(":scope > :is(.sourceCode, .code-fold)");
    if (!cell) continue;
    const bar = document.createElement("div");
    bar.className = "run-bar";
    if (lack) bar.textContent = `Not in the page: ${why[lack - 1]}.`;
    else {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "run-button";
      button.textContent = "Run";
      button.title = `runs this cell and those above it, here in the page; the first click loads ${size} MB`;
      button.onclick = () => open(id);
      bar.append(button);
    }
    code ? code.after(bar) : cell.prepend(bar);
  }
}
