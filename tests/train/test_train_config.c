/* The configuration of training: what is read, defaults, every kind of mistake, and what a resumed run may change. */
#define _XOPEN_SOURCE 700
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "folder.h"
#include "train/config.h"

#define BASE                                                                                                 \
    "\"network\":{\"architecture\":\"drunet\"},\"data\":{\"folders\":[\"a\"]},\"output\":\"o.safetensors\""
#define TENTHS  "{\"share\":0.1},{\"share\":0.1},{\"share\":0.1},{\"share\":0.1},{\"share\":0.1}"
#define NO_DATA "\"network\":{\"architecture\":\"drunet\"},\"output\":\"o.safetensors\""
#define MAPS                                                                                                 \
    "\"network\":{\"architecture\":\"diffusion\"},\"data\":{\"folders\":[\"a\"],\"repeats\":4},\"output\":"  \
    "\"o.safetensors\""
#define NO_NET "\"data\":{\"folders\":[\"a\"]},\"output\":\"o.safetensors\""

static tess_status parse(const char *text, tess_train_config *config, tess_error *error)
{
    *error = (tess_error){""};
    return tess_train_config_parse(text, strlen(text), "there", config, error);
}

/* A text that is refused with a line that begins with the key and contains `part`. */
static void refused(const char *text, const char *part)
{
    tess_train_config config;
    tess_error error;
    const tess_status status = parse(text, &config, &error);
    CHECK_MSG(status == TESS_BAD_INPUT, "%s: status %d", text, (int)status);
    CHECK_MSG(strstr(error.text, part), "%s: '%s' lacks '%s'", text, error.text, part);
    CHECK_MSG(!strchr(error.text, '\n'), "%s", error.text);
    if (status == TESS_OK)
        tess_train_config_clear(&config);
}

static void test_short(void)
{
    tess_train_config c;
    tess_error error;
    CHECK_MSG(parse("{" BASE "}", &c, &error) == TESS_OK, "%s", error.text);
    CHECK(c.network.architecture == TESS_TRAIN_DRUNET && c.network.widths.count == 4 &&
          c.network.widths.list[3] == 512 && c.network.channels == 3);
    CHECK(c.init == TESS_INIT_DRUNET && c.optimizer.kind == TESS_ADAMW && c.optimizer.rate == 1e-3);
    CHECK(c.phases.count == 1 && c.phases.list[0].steps == c.steps && c.phases.list[0].crop == c.data.crop);
    CHECK(strcmp(c.data.folders.list[0].path, "there/a") == 0 &&
          strcmp(c.data.folders.list[0].given, "a") == 0);
    CHECK(strcmp(c.checkpoint.folder.path, "there/o-checkpoints") == 0);
    CHECK(c.schedule.warmup == 500 && c.memory == 0 && strcmp(c.device, "auto") == 0);
    tess_train_config_clear(&c);
    /* A byte-order mark, as some editors write it, and ten shares whose sum is 1 but for rounding. */
    CHECK_MSG(parse("\xEF\xBB\xBF{" BASE ",\"phases\":[" TENTHS "," TENTHS "]}", &c, &error) == TESS_OK, "%s",
              error.text);
    CHECK(c.phases.count == 10 && c.phases.list[9].steps == c.steps / 10);
    tess_train_config_clear(&c);
}

/* A diffusion network has defaults of its own, and its complete configuration reads as itself. */
static void test_diffusion(void)
{
    tess_train_config c, again;
    tess_error error;
    CHECK_MSG(
        parse("{\"network\":{\"architecture\":\"diffusion\",\"widths\":[8,16,32],\"attention\":[2,4]}," NO_NET
              "}",
              &c, &error) == TESS_OK,
        "%s", error.text);
    CHECK(c.init == TESS_INIT_DIFFUSION && c.network.blocks == 2 && c.network.dropout == 0.1 &&
          c.data.scales.count == 2 && c.data.sigma[1] == 0 && c.network.attention.count == 2 &&
          c.deviation_factor == 1 && c.data.repeats == 1);
    tess_json *json = tess_train_config_json(&c);
    char *text = tess_json_dump(json, false);
    CHECK_MSG(parse(text, &again, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_train_config_continues(json, &again, &error) == TESS_OK);
    tess_small_free(text);
    tess_json_free(json);
    tess_train_config_clear(&c);
    tess_train_config_clear(&again);
    refused("{\"network\":{\"architecture\":\"diffusion\",\"widths\":[8]}," NO_NET "}", "network.widths");
    refused("{" MAPS ",\"batch\":6}", "batch: expected a multiple of data.repeats, which is 4, got 6");
    refused("{" MAPS ",\"batch\":8,\"phases\":[{\"share\":0.5},{\"crop\":256}]}",
            "phases[1].batch: expected a multiple of data.repeats, which is 4, got 2");
    refused("{\"network\":{\"architecture\":\"diffusion\",\"attention\":[3]}," NO_NET "}",
            "network.attention[0]");
    refused("{\"network\":{\"architecture\":\"diffusion\",\"blocks\":20}," NO_NET "}", "network.blocks");
}

static void test_full(void)
{
    static const char text[] =
        "{\"network\":{\"architecture\":\"unet\",\"channels\":1,\"widths\":[8,16,32],\"norm\":\"batch\"},"
        "\"data\":{\"folders\":[\"a\",\"/b\"],\"exclude\":[\"x.png\"],\"crop\":64,\"scales\":[1,[0.5,0.25]],"
        "\"sigma\":[0.1,0.3],\"workers\":3,\"cache\":\"512M\"},\"batch\":8,\"steps\":1e3,"
        "\"phases\":[{\"share\":0.6},{\"share\":0.4,\"crop\":128}],"
        "\"loss\":{\"kind\":\"charbonnier\",\"epsilon\":1e-2},"
        "\"optimizer\":{\"kind\":\"sgd\",\"rate\":0.1,\"weight_decay\":1e-4,\"momentum\":0.8,\"nesterov\":"
        "true,"
        "\"clip\":2},\"schedule\":{\"kind\":\"plateau\",\"warmup\":7,\"final\":0.01,\"factor\":0.3,"
        "\"patience\":2},"
        "\"average\":0.99,\"precision\":\"bf16\",\"init\":\"orthogonal\",\"seed\":42,\"recompute\":"
        "\"blocks\","
        "\"micro_batches\":4,\"validation\":{\"folder\":\"v\",\"sigma\":[0.1,0.2],\"every\":50},"
        "\"checkpoint\":{\"folder\":\"c\",\"every\":20},\"output\":\"out/o.safetensors\",\"log\":\"l.jsonl\","
        "\"tensorboard\":\"tb\",\"memory\":\"2GiB\",\"device\":\"cuda:1\"}";
    tess_train_config c, again;
    tess_error error;
    CHECK_MSG(parse(text, &c, &error) == TESS_OK, "%s", error.text);
    CHECK(c.data.cache == (uint64_t)512 << 20 && c.memory == (uint64_t)2 << 30 && c.steps == 1000);
    CHECK(c.data.scales.count == 2 && c.data.scales.weight[1] == 0.25 && c.data.sigma[1] == 0.3);
    CHECK(c.phases.count == 2 && c.phases.list[0].steps == 600 && c.phases.list[1].steps == 400);
    CHECK(c.phases.list[1].crop == 128 && c.phases.list[1].batch == 2); /* the same number of pixels */
    CHECK(tess_train_config_phase(&c, 599) == &c.phases.list[0] &&
          tess_train_config_phase(&c, 600) == &c.phases.list[1] &&
          tess_train_config_phase(&c, 5000) == &c.phases.list[1]);
    CHECK(strcmp(c.data.folders.list[1].path, "/b") == 0 && !c.data.exclude.list[0].path);
    CHECK(tess_train_config_optimize(&c).nesterov && tess_train_config_loss(&c).epsilon == 1e-2);
    /* The complete configuration reads back as the same. */
    tess_json *json = tess_train_config_json(&c);
    char *first = tess_json_dump(json, false), *second = NULL;
    CHECK(first != NULL);
    CHECK_MSG(parse(first, &again, &error) == TESS_OK, "%s in %s", error.text, first);
    tess_json *json2 = tess_train_config_json(&again);
    second = tess_json_dump(json2, false);
    CHECK_MSG(second && strcmp(first, second) == 0, "%s\n%s", first, second);
    CHECK(!strstr(first, "there"));
    CHECK(tess_train_config_continues(json, &again, &error) == TESS_OK);
    tess_small_free(first), tess_small_free(second);
    tess_json_free(json), tess_json_free(json2);
    tess_train_config_clear(&c), tess_train_config_clear(&again);
}

/* Each is a mistake that somebody makes. */
static void test_mistakes(void)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"{", "not valid JSON: line 1"},
        {"[1]", "configuration: expected an object, got [1]"},
        {"{" BASE ",\"step\":5}", "step: is no key; did you mean steps?"},
        {"{" BASE ",\"optimiser\":{}}", "optimiser: is no key; did you mean optimizer?"},
        {"{" BASE ",\"rate\":5}", "rate: is no key; did you mean optimizer.rate?"},
        {"{" BASE ",\"optimizer\":{\"rates\":1}}",
         "optimizer.rates: is no key; did you mean optimizer.rate?"},
        {"{" BASE ",\"loss\":{\"zzzzzzzz\":1}}", "loss.zzzzzzzz: is no key; the keys here are kind, epsilon"},
        {"{" BASE ",\"zzzzzzzzzz\":1}", "zzzzzzzzzz: is no key; the keys here are pipeline"},
        {"{" BASE ",\"optimizer\":{\"rate\":\"fast\"}}",
         "optimizer.rate: expected a number above 0, got \"fast\""},
        {"{" BASE ",\"optimizer\":{\"rate\":0}}", "optimizer.rate: expected a number above 0, got 0"},
        {"{" BASE ",\"optimizer\":{\"rate\":-1e-3}}",
         "optimizer.rate: expected a number above 0, got -0.001"},
        {"{" BASE ",\"optimizer\":{\"kind\":\"lion\"}}",
         "optimizer.kind: expected \"sgd\", \"adam\" or \"adamw\", got \"lion\""},
        {"{" BASE ",\"optimizer\":{\"betas\":[0.9,1]}}", "optimizer.betas: expected a list of two numbers"},
        {"{" BASE ",\"optimizer\":{\"betas\":0.9}}", "optimizer.betas: expected a list of two numbers"},
        {"{" BASE ",\"optimizer\":{\"momentum\":0.5}}",
         "optimizer.momentum: is not used where optimizer.kind is \"adamw\"; remove it"},
        {"{" BASE ",\"optimizer\":{\"kind\":\"sgd\",\"momentum\":0,\"nesterov\":true}}",
         "optimizer.nesterov: needs optimizer.momentum above 0"},
        {"{" BASE ",\"optimizer\":[]}", "optimizer: expected an object, got []"},
        {"{" BASE ",\"schedule\":{\"kind\":\"plateau\"}}",
         "schedule.kind: \"plateau\" follows the validation"},
        {"{" BASE ",\"schedule\":{\"every\":5}}",
         "schedule.every: is not used where schedule.kind is \"cosine\""},
        {"{" BASE ",\"schedule\":{\"kind\":\"step\",\"factor\":1}}",
         "schedule.factor: expected a number above 0 and below 1, got 1"},
        {"{" BASE ",\"steps\":10,\"schedule\":{\"warmup\":11}}",
         "schedule.warmup: expected at most the 10 steps"},
        {"{" BASE ",\"batch\":2.5}", "batch: expected a number of crops, 1 to 65536, got 2.5"},
        {"{" BASE ",\"batch\":0}", "batch: expected"},
        {"{" BASE ",\"batch\":null}", "batch: expected a number of crops, 1 to 65536, got null"},
        {"{" BASE ",\"steps\":true}", "steps: expected"},
        {"{" BASE ",\"steps\":99999999999999999999}", "not valid JSON"},
        {"{" BASE ",\"batch\":1,\"batch\":2}", "not valid JSON"},
        {"{" BASE ",\"average\":1}", "average: expected a decay from 0"},
        {"{" BASE ",\"precision\":\"fp64\"}",
         "precision: expected \"auto\", \"fp32\", \"tf32\", \"bf16\" or \"fp16\""},
        {"{" BASE ",\"micro_batches\":\"many\"}", "micro_batches: expected \"auto\" or a number from 1"},
        {"{" BASE ",\"memory\":\"lots\"}", "memory: expected a size such as"},
        {"{" BASE ",\"memory\":300}", "memory: expected a size such as"},
        {"{" BASE ",\"device\":\"tpu\"}", "device: expected"},
        {"{" BASE ",\"device\":\"cuda:\"}", "device: expected"},
        {"{" BASE ",\"seed\":-1}", "seed: expected a whole number from 0, got -1"},
        {"{" BASE ",\"loss\":{\"epsilon\":0.1}}", "loss.epsilon: is not used where loss.kind is \"l1\""},
        {"{" BASE ",\"validation\":{\"sigma\":[0.1,25]}}", "validation.sigma[1]: expected a noise level"},
        {"{" BASE ",\"validation\":{\"sigma\":[]}}", "validation.sigma: expected a list"},
        {"{" BASE ",\"validation\":{\"sigma\":[0.1]}}",
         "validation.sigma: is not used without validation.folder"},
        {"{" BASE ",\"validation\":{\"every\":5}}",
         "validation.every: is not used without validation.folder"},
        {"{" BASE ",\"phases\":[{\"share\":0.5},{\"crop\":100}]}",
         "phases[1].crop: expected a multiple of 8 for this network, got 100"},
        {"{" BASE ",\"phases\":[{\"share\":0.5}]}", "phases: have 10000 steps together, but steps is 20000"},
        {"{" BASE ",\"phases\":[{\"share\":0.9},{\"share\":0.9}]}",
         "phases: have shares of 1.8 together; use at most 1"},
        {"{" BASE ",\"loss\":{\"kind\":\"bce\"}}",
         "loss.kind: expected \"mse\", \"l1\", \"charbonnier\", \"rmse\" or \"psnr\", got \"bce\""},
        {"{" NO_NET ",\"network\":{\"architecture\":\"drunet\",\"channels\":2}}",
         "network.channels: expected 1 (gray) or 3 (colour), got 2"},
        {"{" NO_NET ",\"network\":{\"architecture\":\"drunet\",\"channels\":4}}",
         "network.channels: expected 1 (gray) or 3 (colour), got 4"},
        {"{" BASE ",\"phases\":[{\"share\":0.5,\"steps\":3}]}", "phases[0]: has steps and share"},
        {"{" BASE ",\"phases\":[{\"steps\":3},{\"share\":0.5}]}", "phases[1]: has a share where"},
        {"{" BASE ",\"phases\":[{\"batch\":3},{\"share\":0.5}]}", "phases[0]: has no steps"},
        {"{" BASE ",\"phases\":[{\"size\":3}]}", "phases[0].size: is no key"},
        {"{" BASE ",\"phases\":[7]}", "phases[0]: expected an object"},
        {"{" BASE ",\"phases\":[]}", "phases: expected a list"},
        {"{" NO_DATA "}", "data.folders: is missing; expected a list of folders"},
        {"{" NO_DATA ",\"data\":{\"folders\":\"a\"}}", "data.folders: expected a list of 1 to 64 folders"},
        {"{" NO_DATA ",\"data\":{\"folders\":[]}}", "data.folders: expected a list of 1 to 64 folders"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\",3]}}", "data.folders[1]: expected a folder, got 3"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\"],\"sigma\":25}}", "data.sigma: expected a noise level"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\"],\"sigma\":[0.2,0.1]}}",
         "data.sigma: expected the lowest level first"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\"],\"crop\":90}}", "data.crop: expected a multiple of 8"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\"],\"scales\":[1,[1,0]]}}",
         "data.scales[1]: expected a scale"},
        {"{" NO_DATA ",\"data\":{\"folders\":[\"a\"],\"exclude\":[\"\"]}}",
         "data.exclude[0]: expected the name of a file"},
        {"{" NO_NET "}", "network.architecture: is missing; expected \"drunet\""},
        {"{" NO_NET ",\"network\":{\"weights\":\"w\",\"architecture\":\"unet\"}}",
         "network.architecture: is not used with network.weights"},
        {"{" NO_NET ",\"network\":{\"weights\":\"w\",\"channels\":1}}",
         "network.channels: is not used with network.weights"},
        {"{" NO_NET ",\"network\":{\"architecture\":\"drunet\",\"depth\":17}}",
         "network.depth: is not used where network.architecture is \"drunet\""},
        {"{" NO_NET ",\"network\":{\"architecture\":\"drunet\",\"widths\":[8,16]}}",
         "network.widths: expected 4 widths for drunet, got 2"},
        {"{" NO_NET ",\"network\":{\"architecture\":\"drunet\",\"widths\":[8,16,0,8]}}",
         "network.widths[2]: expected a width"},
        {"{" NO_NET ",\"network\":{\"architecture\":\"resnet\"}}",
         "network.architecture: expected \"drunet\""},
        {"{\"network\":{\"architecture\":\"dncnn\"},\"data\":{\"folders\":[\"a\"]}}", "output: is missing"},
        {"{\"network\":{\"architecture\":\"dncnn\"},\"data\":{\"folders\":[\"a\"]},\"output\":\"o.pth\"}",
         "output: expected a name that ends in .safetensors"},
        {"{\"network\":{\"architecture\":\"dncnn\"},\"data\":{\"folders\":[\"a\"]},\"output\":\"\"}",
         "output: expected"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i].text, wrong[i].part);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_files(void)
{
    tess_train_config c;
    tess_error error = {""};
    write_text(in_folder("c.json"), "{" BASE ",\"batch\":\"x\"}");
    CHECK(tess_train_config_read(in_folder("c.json"), &c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, in_folder("c.json: batch: expected")), "%s", error.text);
    CHECK(tess_train_config_read(in_folder("none.json"), &c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "none.json: No such file"), "%s", error.text);
    CHECK(tess_train_config_read(folder, &c, &error) == TESS_BAD_INPUT);

    write_text(in_folder("c.json"), "{" BASE ",\"log\":\"x/l.jsonl\",\"validation\":{\"folder\":\"v\"}}");
    CHECK_MSG(tess_train_config_read(in_folder("c.json"), &c, &error) == TESS_OK, "%s", error.text);
    CHECK(strcmp(c.data.folders.list[0].path, in_folder("a")) == 0);
    CHECK(tess_train_config_check_files(&c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "data.folders[0]: ") && strstr(error.text, "No such file"), "%s",
              error.text);
    write_text(in_folder("a"), "");
    CHECK(tess_train_config_check_files(&c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "is a file; expected a folder"), "%s", error.text);
    CHECK(remove(in_folder("a")) == 0 && mkdir(in_folder("a"), 0777) == 0);
    CHECK(tess_train_config_check_files(&c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "validation.folder: "), "%s", error.text);
    CHECK(mkdir(in_folder("v"), 0777) == 0);
    CHECK(tess_train_config_check_files(&c, &error) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(error.text, "log: ") && strstr(error.text, "there is no folder"), "%s", error.text);
    CHECK(mkdir(in_folder("x"), 0777) == 0);
    CHECK_MSG(tess_train_config_check_files(&c, &error) == TESS_OK, "%s", error.text);
    tess_train_config_clear(&c);
}

/* What a resumed run may change, and what not. */
static void test_continues(void)
{
    static const struct {
        const char *before, *after, *part; /* part NULL: may be continued */
    } cases[] = {
        {"{" BASE "}", "{" BASE ",\"device\":\"cpu\",\"recompute\":\"all\",\"memory\":\"1G\"}", NULL},
        {"{" BASE "}", "{" BASE ",\"log\":\"l\",\"checkpoint\":{\"every\":7},\"micro_batches\":2}", NULL},
        {"{" BASE "}", "{" BASE ",\"steps\":5000}", "steps: was 20000 when the run started, and is 5000 now"},
        {"{" BASE "}", "{" BASE ",\"batch\":8}", "batch: was 16"},
        {"{" BASE "}", "{" BASE ",\"optimizer\":{\"kind\":\"sgd\"}}", "optimizer.kind: was \"adamw\""},
        {"{" BASE "}", "{" BASE ",\"seed\":9}", "seed: was 0 when the run started, and is 9 now"},
        {"{" BASE "}", "{" BASE ",\"average\":0}", "average: was 0.999"},
        {"{" BASE "}", "{" BASE ",\"validation\":{\"folder\":\"v\"}}", NULL},
        {"{" BASE ",\"schedule\":{\"kind\":\"plateau\"},\"validation\":{\"folder\":\"v\"}}",
         "{" BASE ",\"schedule\":{\"kind\":\"plateau\"},\"validation\":{\"folder\":\"w\"}}",
         "validation.folder: was \"v\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tess_train_config before, after;
        tess_error error;
        CHECK(parse(cases[i].before, &before, &error) == TESS_OK &&
              parse(cases[i].after, &after, &error) == TESS_OK);
        tess_json *json = tess_train_config_json(&before);
        const tess_status status = tess_train_config_continues(json, &after, &error);
        CHECK_MSG((status == TESS_OK) == !cases[i].part, "%zu: %s", i, error.text);
        CHECK_MSG(!cases[i].part || strstr(error.text, cases[i].part), "%zu: %s", i, error.text);
        tess_json_free(json);
        tess_train_config_clear(&before), tess_train_config_clear(&after);
    }
}

/* The n-th allocation fails: a message, and nothing leaks (sanitizers see it). */
static void test_memory(void)
{
    for (uint64_t n = 1; n < 400; n++) {
        tess_train_config c;
        tess_error error = {""};
        tess_mem_fail_at(n);
        const tess_status status = parse("{" BASE ",\"log\":\"l\"}", &c, &error);
        tess_json *json = status == TESS_OK ? tess_train_config_json(&c) : NULL;
        tess_mem_fail_at(0);
        CHECK_MSG(status == TESS_OK || status == TESS_NO_MEMORY, "%llu: %s", (unsigned long long)n,
                  error.text);
        tess_json_free(json);
        if (status == TESS_OK)
            tess_train_config_clear(&c);
    }
}

/* A pipeline: its own defaults, steps that the number of cubes decides, and the same again from what is written. */
static void test_pipeline(void)
{
    static const char text[] =
        "{\"pipeline\":{\"nodes\":[{\"kind\":\"rx\"}]},\"train\":[\"rx\"],\"data\":{\"folders\":[\"a\"]},"
        "\"epochs\":5,\"batch\":4,\"output\":\"o.safetensors\"}";
    tess_train_config c, again;
    tess_error error = {{0}};
    CHECK_MSG(tess_train_config_parse(text, strlen(text), "", &c, &error) == TESS_OK, "%s", error.text);
    CHECK(c.network.architecture == TESS_TRAIN_PIPELINE && c.pipeline.graph && c.train.count == 1 &&
          c.data.shuffle);
    CHECK(tess_train_config_pipeline(&c, 10, 40, &error) == TESS_OK);
    CHECK(c.steps == 13 && c.data.crop == 40 && c.schedule.warmup == 0 &&
          c.schedule.kind == TESS_RATE_CONSTANT && c.optimizer.clip == 1 && c.optimizer.betas[1] == 0.999 &&
          c.average == 0 && c.validation.every == 3);
    tess_json *json = tess_train_config_json(&c);
    char *written = tess_json_dump(json, false);
    CHECK_MSG(tess_train_config_parse(written, strlen(written), "", &again, &error) == TESS_OK, "%s",
              error.text);
    CHECK(tess_train_config_pipeline(&again, 10, 40, &error) == TESS_OK);
    CHECK_MSG(tess_train_config_continues(json, &again, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_train_config_pipeline(&again, 11, 40, &error) != TESS_OK && strstr(error.text, "14 steps"));
    tess_json_free(json);
    tess_small_free(written);
    tess_train_config_clear(&c);
    tess_train_config_clear(&again);
}

int main(void)
{
    test_pipeline();
    CHECK(mkdtemp(folder) != NULL);
    test_short();
    test_full();
    test_diffusion();
    test_mistakes();
    test_files();
    test_continues();
    test_memory();
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
