// Runs before Perfetto's UI. Opens the trace, keeps requests at home, and tells the server as long
// as the page is open.
"use strict";
(() => {
  const { src, dataset } = document.currentScript;
  const base = new URL("..", src);

  // The UI opens the trace that its address names. After a reload, its address names none.
  const [, query = ""] = location.hash.split("?");
  const args = new URLSearchParams(query);
  if (!args.get("url") && !args.get("local_cache_key")) {
    args.delete("local_cache_key");
    const all = [["url", new URL(dataset.trace, base).href], ...args];
    const text = all.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
    history.replaceState(null, "", `#!/?${text}`);
  }

  // The policy of this page forbids requests to other places, and the browser would complain of
  // each. The UI tries, for instance, to find a trace processor on this machine, and to load a
  // script that only Google's employees can load. It goes on without.
  const isHere = (target) => {
    const url = new URL(target instanceof Request ? target.url : target, document.baseURI);
    return url.origin === location.origin || url.protocol === "blob:" || url.protocol === "data:";
  };
  const { fetch } = window;
  window.fetch = (target, options) =>
    isHere(target)
      ? fetch(target, options)
      : Promise.reject(new TypeError(`esatto view shows this page offline, without ${target}`));
  const source = Object.getOwnPropertyDescriptor(HTMLScriptElement.prototype, "src");
  Object.defineProperty(HTMLScriptElement.prototype, "src", {
    ...source,
    set(target) {
      if (isHere(target)) source.set.call(this, target);
      else setTimeout(() => this.dispatchEvent(new Event("error")));
    },
  });

  // The answer lasts as long as this page is open. By its end, the server learns that it may end.
  const isOpen = async () => {
    const { body } = await fetch(new URL("esatto/open", base), { cache: "no-store" });
    const reader = body.getReader();
    while (!(await reader.read()).done);
  };
  isOpen().catch(() => {});
})();
