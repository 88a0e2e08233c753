// Chooses light or dark. A plain script, so that it runs before anything is painted.
{
  const chosen = localStorage.getItem("termdp.theme");
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}
