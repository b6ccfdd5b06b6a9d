// Elements of the page. Texts of the trace are set as text, never as markup.

/** Returns a new element with attributes, properties that begin with `on`, and children. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Returns a table that is sorted by a click on a heading. */
export function sortableTable({ label, columns, rows, onpick, most = 500 }) {
  const body = element("tbody");
  const heads = [];
  let shown = most;
  let sorted = rows;
  const fill = () => {
    body.replaceChildren(
      ...sorted.slice(0, shown).map((row) =>
        element("tr", {}, ...columns.map((column, i) => {
          const text = column.text(row);
          const pick = i === 0 && onpick ? onpick(row) : null;
          const content = pick ? element("button", { class: "link", type: "button", onclick: pick }, text) : text;
          return element("td", { class: column.number ? "number" : null }, content);
        })),
      ),
    );
    if (sorted.length > shown) {
      const more = element("button", { type: "button", onclick: () => { shown *= 4; fill(); } },
        `Show more (${sorted.length - shown} left)`);
      body.append(element("tr", {}, element("td", { colspan: columns.length }, more)));
    }
  };
  const sort = (column, head) => {
    const descending = head.getAttribute("aria-sort") !== "descending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    const key = column.key ?? column.text;
    sorted = [...rows].sort((a, b) => {
      const [one, two] = [key(a), key(b)];
      return one < two ? -sign : one > two ? sign : 0;
    });
    fill();
  };
  const row = element("tr", {}, ...columns.map((column) => {
    const head = element("th", { scope: "col", class: column.number ? "number" : null });
    heads.push(head);
    head.append(element("button", { type: "button", onclick: () => sort(column, head) }, column.name));
    return head;
  }));
  fill();
  return element("table", { "aria-label": label }, element("thead", {}, row), body);
}
