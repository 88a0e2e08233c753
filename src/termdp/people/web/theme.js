// Light or dark, before anything is painted: a plain script that the page waits for.
{
  const chosen = localStorage.getItem("termdp.theme");
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}
