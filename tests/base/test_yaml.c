/* YAML as JSON: what words mean, what cuvis.ai and PyYAML write, copies of anchors, limits, and a failed allocation anywhere. */
#include "check.h"

#include "base/mem.h"
#include "base/yaml.h"

static tess_status parse(const char *text, tess_json **out, tess_error *error)
{
    return tess_yaml_parse(text, strlen(text), out, error);
}

/* The JSON that a text gives. */
static void check_is(const char *text, const char *json)
{
    tess_json *value = NULL;
    tess_error error = {{0}};
    CHECK_MSG(parse(text, &value, &error) == TESS_OK, "%s: %s", text, error.text);
    char *got = tess_json_dump(value, false);
    CHECK_MSG(got && strcmp(got, json) == 0, "%s gives %s, not %s", text, got ? got : "nothing", json);
    tess_small_free(got);
    tess_json_free(value);
}

static void check_refused(const char *text, const char *words)
{
    tess_json *value = NULL;
    tess_error error = {{0}};
    CHECK_MSG(parse(text, &value, &error) == TESS_BAD_INPUT && !value, "%s was accepted", text);
    CHECK_MSG(strstr(error.text, words), "'%s' does not say '%s'", error.text, words);
}

static void test_words(void)
{
    check_is("[1, -2, +3, 0, 123456789012345678]", "[1,-2,3,0,123456789012345678]");
    check_is("[1.5, 1.0e-06, 1e-6, .5, 5., -0.25E+2]", "[1.5,1e-6,1e-6,0.5,5.0,-25.0]");
    check_is("[true, yes, On, FALSE, no, off]", "[true,true,true,false,false,false]");
    check_is("[null, ~, Null, ]", "[null,null,null]");
    check_is("a:\nb: text\n", "{\"a\":null,\"b\":\"text\"}");
    check_is(
        "[007, 1_000, .inf, .nan, 1e999, 1.2.3, 0x10, -, e5, 1e, 12a]",
        "[\"007\",\"1_000\",\".inf\",\".nan\",\"1e999\",\"1.2.3\",\"0x10\",\"-\",\"e5\",\"1e\",\"12a\"]");
    check_is("['1', \"true\", '', !!str 5]", "[\"1\",\"true\",\"\",\"5\"]");
    check_is("12345678901234567890123", "1.2345678901234568e22");
    check_is("word", "\"word\"");
}

static void test_forms(void)
{
    check_is("nodes:\n- name: a\n  hparams:\n    eps: 1.0e-06\n    ids:\n    - 0\n    - 1\n- {name: b, "
             "hparams: {}}\n",
             "{\"nodes\":[{\"name\":\"a\",\"hparams\":{\"eps\":1e-6,\"ids\":[0,1]}},{\"name\":\"b\","
             "\"hparams\":{}}]}");
    check_is("text: one\n  two\npath: outputs\\x\\..\\y # why\n",
             "{\"text\":\"one two\",\"path\":\"outputs\\\\x\\\\..\\\\y\"}");
    check_is("---\na: 1\n...\n", "{\"a\":1}");
    check_is("a: &id001 [0, 1]\nb: *id001\nc: &x 5\nd: {e: *x}\n",
             "{\"a\":[0,1],\"b\":[0,1],\"c\":5,\"d\":{\"e\":5}}");
    check_is("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", "{\"a\":1,\"b\":1,\"c\":2,\"d\":2}");
    check_is("a: &x {k: [t, 1.5, null, true]}\nb: [*x, *x]\n",
             "{\"a\":{\"k\":[\"t\",1.5,null,true]},\"b\":[{\"k\":[\"t\",1.5,null,true]},{\"k\":[\"t\",1.5,"
             "null,true]}]}");
}

static void test_mistakes(void)
{
    check_refused("", "empty");
    check_refused("a: b: c", "line 1");
    check_refused("a: [1, 2\nb: 3\n", "line 2");
    check_refused("a: 1\na: 2\n", "'a' comes twice");
    check_refused("a: &x [*x]", "contains itself");
    check_refused("*x", "anchor that is not there");
    check_refused("*x : 1", "anchor");
    check_refused("&x a: 1", "anchor");
    check_refused("? {a: 1}\n: 2", "key");
    check_refused("? [a]\n: 2", "key");
    check_refused("<<: {a: 1}", "<<");
    check_refused("a: 1\n---\nb: 2\n", "line 2: a second document");
    check_refused("!!python/name:os.system x", "tag");
    check_refused("!!binary aGVsbG8=", "tag");
    check_refused("a: !x {b: 1}", "tag");
    check_refused("\"a\\0b\"", "zero byte");
    check_refused("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "nested deeper");
    check_is("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
             "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    char laughs[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 20; i++)
        sprintf(laughs + strlen(laughs), "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    check_refused(laughs, "more values");
    static char repeated[1 << 16] = "a: &a ";
    memset(repeated + 6, 'x', 60000); /* 22 copies are more than a megabyte */
    strcpy(repeated + 60006,
           "\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n");
    check_refused(repeated, "more values");
}

static void test_failed_allocations(void)
{
    static const char text[] = "nodes:\n- name: a\n  list: &l [1, 2.5, yes, null, 'x']\n- {copy: *l}\n";
    uint64_t n = 0;
    for (bool failed = true; failed;) {
        tess_json *value = NULL;
        tess_error error = {{0}};
        const uint64_t before = tess_mem_calls();
        tess_mem_fail_at(++n);
        const tess_status status = parse(text, &value, &error);
        tess_mem_fail_at(0);
        failed = tess_mem_calls() - before >= n;
        CHECK_MSG(status == (failed ? TESS_NO_MEMORY : TESS_OK), "allocation %llu: %d %s",
                  (unsigned long long)n, status, error.text);
        tess_json_free(value);
    }
    CHECK(n > 20);
}

int main(void)
{
    tess_json *value = NULL;
    if (parse("a: 1", &value, NULL) == TESS_UNSUPPORTED)
        return check_skip("built without libyaml");
    tess_json_free(value);
    test_words();
    test_forms();
    test_mistakes();
    test_failed_allocations();
    return check_end();
}
