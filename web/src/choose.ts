/** The first of `tags` that somebody wants to read, in whole or by its language alone; English if there is none. */
export function choose(wanted: readonly string[], tags: readonly string[]): string {
  for (const tag of wanted) {
    if (tags.includes(tag)) return tag;
    const base = tag.split("-")[0]?.toLowerCase() ?? "";
    if (tags.includes(base)) return base;
  }
  return "en";
}
