/* test_json.c: records can be built without checks in between and read back unchanged; if the n-th allocation fails,
 * the result is NULL and nothing else breaks. */
#include "base/json.h"

#include "base/mem.h"
#include "check.h"

static tess_json *make_record(void)
{
    tess_json *record = tess_json_object(), *tile = tess_json_array(), *plan = tess_json_object();
    tess_json_append_int(&tile, 256);
    tess_json_append_double(&tile, 0.5);
    tess_json_append_string(&tile, "x");
    tess_json_set(&plan, "tile", tile);
    tess_json_set_bool(&plan, "calibrated", false);
    tess_json_set_string(&record, "name", "bad \xff byte, good \xc3\xa4");
    tess_json_set_double(&record, "sigma", 0.1);
    tess_json_set_double(&record, "psnr_db", INFINITY);
    tess_json_set_int(&record, "bytes", INT64_MAX);
    tess_json_set_string(&record, "truth", NULL);
    tess_json_set(&record, "plan", plan);
    return record;
}

static const char compact[] =
    "{\"name\":\"bad \xef\xbf\xbd byte, good \xc3\xa4\",\"sigma\":0.1,\"psnr_db\":null,"
    "\"bytes\":9223372036854775807,\"truth\":null,"
    "\"plan\":{\"tile\":[256,0.5,\"x\"],\"calibrated\":false}}";

static void test_build_and_read(void)
{
    tess_error error = {{0}};
    tess_json *record = make_record(), *again = NULL;
    char *text = tess_json_dump(record, false), *indented = tess_json_dump(record, true);
    CHECK_MSG(text && strcmp(text, compact) == 0, "%s", text ? text : "NULL");
    CHECK(indented && strstr(indented, "\n  \"sigma\": 0.1"));
    tess_json_free(record);
    CHECK(indented && tess_json_parse(indented, strlen(indented), &again, &error) == TESS_OK);
    CHECK(tess_json_get_double(again, "sigma", 0) == 0.1 &&
          tess_json_get_int(again, "bytes", 0) == INT64_MAX);
    CHECK(tess_json_get_double(again, "bytes", 0) == 0x1p63 && tess_json_get_int(again, "sigma", -3) == -3);
    CHECK(tess_json_get_double(again, "psnr_db", -1) == -1 && !tess_json_get_string(again, "none", NULL));
    const tess_json *plan = tess_json_get(again, "plan"), *tile = tess_json_get(plan, "tile");
    CHECK(!tess_json_get_bool(plan, "calibrated", true) &&
          tess_json_is_bool(tess_json_get(plan, "calibrated")));
    CHECK(tess_json_length(tile) == 3 && tess_json_as_int(tess_json_at(tile, 0), 0) == 256);
    CHECK(!tess_json_at(tile, 3) && !tess_json_at(tile, -1) && !tess_json_at(plan, 0));
    CHECK(strcmp(tess_json_as_string(tess_json_at(tile, 2), ""), "x") == 0);
    static const char *const keys[] = {"name", "sigma", "psnr_db", "bytes", "truth", "plan"};
    int count = 0;
    for (const char *key = NULL; (key = tess_json_next_key(again, key)); count++)
        CHECK(count < 6 && strcmp(key, keys[count]) == 0);
    CHECK(count == 6 && tess_json_length(again) == 6 && tess_json_length(NULL) == 0);
    tess_json_free(again);
    tess_small_free(text);
    tess_small_free(indented);
}

/* Numbers are written with as many digits as they need. */
static void test_numbers(void)
{
    static const double values[] = {0.1,
                                    0.1 + 0.2,
                                    1.0 / 3,
                                    -4e-300,
                                    5e-324,
                                    1.7976931348623157e308,
                                    255,
                                    1e22,
                                    -9999.9,
                                    0.30000001192092896,
                                    123456789.01234567,
                                    -0.0};
    enum { COUNT = sizeof values / sizeof *values };
    tess_error error = {{0}};
    tess_json *list = tess_json_array(), *again = NULL;
    tess_json_append_string(&list, "0.10000000000000001 \\\" 0.10000000000000001");
    for (int i = 0; i < COUNT; i++)
        tess_json_append_double(&list, values[i]);
    char *text = tess_json_dump(list, false);
    CHECK_MSG(text && strstr(text, ",0.1,0.30000000000000004,0.3333333333333333,") &&
                  strstr(text, "\",0.1,") && strstr(text, "1 \\\\\\\" 0.10000000000000001\""),
              "%s", text ? text : "NULL");
    CHECK(text && tess_json_parse(text, strlen(text), &again, &error) == TESS_OK);
    for (int i = 0; i < COUNT; i++)
        CHECK(tess_json_as_double(tess_json_at(again, i + 1), 0) == values[i]);
    tess_json_free(list);
    tess_json_free(again);
    tess_small_free(text);
}

static void test_null_climbs(void)
{
    tess_json *record = tess_json_object(), *gone = NULL;
    tess_json_set_int(&record, "x", 1);
    tess_json_set(&record, "child", gone);
    CHECK(!record);
    tess_json_set(&record, "later", tess_json_array()); /* frees what it is given */
    tess_json_append_int(&record, 1);
    CHECK(!record && !tess_json_dump(record, false));
    tess_json *array = tess_json_array();
    tess_json_set_int(&array, "key of no object", 1);
    CHECK(!array);
    tess_json_free(NULL);
}

static void test_parse_errors(void)
{
    static const char *const texts[] = {"",    "{",     "{\"a\":1,\"a\":2}", "[1,]",
                                        "nul", "[1] 2", "\"\xff\"",          "{\"a\\u0000b\":1}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tess_error error = {{0}};
        tess_json *value = NULL;
        CHECK_MSG(tess_json_parse(texts[i], strlen(texts[i]), &value, &error) == TESS_BAD_INPUT && !value,
                  "%s", texts[i]);
        CHECK(strstr(error.text, "not valid JSON"));
    }
    tess_error error = {{0}};
    tess_json *value = NULL;
    CHECK(tess_json_parse("17garbage", 2, &value, &error) == TESS_OK && tess_json_as_int(value, 0) == 17);
    tess_json_free(value);
}

static void test_no_memory(void)
{
    bool done = false;
    for (uint64_t n = 1; n < 500 && !done; n++) {
        tess_error error = {{0}};
        tess_json *value = NULL;
        tess_mem_fail_at(n);
        tess_json *record = make_record();
        char *text = tess_json_dump(record, false);
        tess_status status = tess_json_parse(compact, strlen(compact), &value, &error);
        tess_mem_fail_at(0);
        CHECK(!text || strcmp(text, compact) == 0);
        CHECK((status == TESS_OK && value) || status == TESS_NO_MEMORY);
        done = text && value;
        tess_json_free(record);
        tess_json_free(value);
        tess_small_free(text);
    }
    CHECK(done);
}

/* jansson ends the process if a number lost its last characters, and reads beyond a string that did. */
static void test_no_memory_for_tokens(void)
{
    static const char *const texts[] = {
        "[1.2345678901234567e-05]", "[-1234567890123e+5]", "[12345678901234e2]",
        "{\"a name of more than thirty-two characters\": \"and a longer value of that name\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tess_status status = TESS_NO_MEMORY;
        for (uint64_t n = 1; n < 100 && status != TESS_OK; n++) {
            tess_error error = {{0}};
            tess_json *value = NULL;
            tess_mem_fail_at(n);
            status = tess_json_parse(texts[i], strlen(texts[i]), &value, &error);
            tess_mem_fail_at(0);
            CHECK_MSG(status == TESS_OK || status == TESS_NO_MEMORY, "%s: %s", texts[i], error.text);
            CHECK(!value == (status != TESS_OK));
            tess_json_free(value);
        }
        CHECK(status == TESS_OK);
    }
    tess_json *value = tess_json_double(1.25e-05);
    char *text = NULL;
    for (uint64_t n = 1; n < 100 && !text; n++) {
        tess_mem_fail_at(n);
        text = tess_json_dump(value, false);
        tess_mem_fail_at(0);
    }
    CHECK_MSG(text && strcmp(text, "1.25e-5") == 0, "%s", text);
    tess_small_free(text);
    tess_json_free(value);
}

static void test_utf8(void)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"", true},
        {"a\x7f", true},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true},
        {"\xc3", false},
        {"\xa4", false},
        {"\xc0\x80", false},
        {"\xe0\x80\x80", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x80\x80\x80", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xe2\x82", false},
        {"\xe2(\xa1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MSG(tess_utf8_valid(cases[i].text, strlen(cases[i].text)) == cases[i].valid, "case %zu", i);
}

int main(void)
{
    test_build_and_read();
    test_numbers();
    test_null_climbs();
    test_parse_errors();
    test_no_memory();
    test_no_memory_for_tokens();
    test_utf8();
    return check_end();
}
