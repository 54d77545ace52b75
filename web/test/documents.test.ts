// @vitest-environment node
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { registerSchema, validate as validateDraft07 } from "@hyperjump/json-schema/draft-07";
import { type Output, validate } from "@hyperjump/json-schema/openapi-3-1";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

// That the two documents are documents of their kinds at all. What they say is held against real servers by the tests of server.

const read = (name: string) => parse(readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8"));
const complaints = (output: Output) =>
  (output.valid ? [] : (output.errors ?? [])).map((e) => `${e.instanceLocation}: ${e.absoluteKeywordLocation}`);

const asyncapi = createRequire(import.meta.url)("@asyncapi/specs/schemas/3.0.0.json");
registerSchema(asyncapi, asyncapi.$id);

const kinds: [string, (document: ReturnType<typeof read>) => Promise<Output>][] = [
  ["openapi.yaml", (it) => validate("https://spec.openapis.org/oas/3.1/schema-base", it, "BASIC")],
  ["asyncapi.yaml", (it) => validateDraft07(asyncapi.$id, it, "BASIC")],
];

describe.each(kinds)("%s", (name, check) => {
  // The schemas of both are large, and compiled here.
  const patient = { timeout: 60_000 };

  it("is as its specification wants it", patient, async () => {
    expect(complaints(await check(read(name)))).toEqual([]);
  });

  it("would be found wrong", patient, async () => {
    const { valid } = await check({ ...read(name), info: { title: "of no version" } });
    expect(valid).toBe(false);
  });

  it("says nothing by mistake", () => {
    // A comma that is not in quotes begins a new field, without a value.
    const empty: string[] = [];
    JSON.stringify(read(name), (key, value) => {
      if (value === null) empty.push(key);
      return value;
    });
    expect(empty).toEqual([]);
  });
});
