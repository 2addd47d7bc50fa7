/* Reconstruction from arrays in memory: results equal those of the job on files bit for bit, also when the plan is
 * reused, and planned bytes are counted; invalid settings are refused. */
#define _GNU_SOURCE
#include "library_images.h"

#include "job/library/library.h"
#include "physics/rays.h"
#include "support.h"

enum { N = 32, COLUMNS = 40, VIEWS = 24, DEPTH = 16, MOST = 4 * N * N * 3 };
static const double PI = 3.14159265358979323846;

static char folder[] = "/tmp/tessera_reconstructor_XXXXXX";

static char *name_of(const char *file)
{
    static char names[8][96];
    static int next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%s/%s", folder, file);
    return name;
}

static void reconstruct_files(const char *json, const char *model, int64_t iterations, int64_t count,
                              float *out)
{
    FILE *file = fopen(name_of("problem.json"), "w");
    if (!file)
        abort();
    fputs(json, file);
    fclose(file);
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        abort();
    tess_reconstruct_settings s;
    tess_reconstruct_settings_init(&s);
    s.common.device = "cpu";
    s.problem = name_of("problem.json");
    s.output = name_of("out.npy");
    s.model = model;
    s.iterations = iterations;
    char *record = NULL;
    const tess_status status = tess_reconstruct(context, &s, &record);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(context));
    if (status == TESS_OK)
        read_npy(name_of("out.npy"), (size_t)count * sizeof *out, out);
    tess_record_free(record);
    tess_context_destroy(context);
}

/* The most that was held in the run, the network included, which is loaded all the time. */
static void check_bytes(const handles *h, const tess_reconstructor *plan)
{
    const tess_engine *engine = &h->model->opened->engine;
    tess_mem_usage peak;
    tess_bytes planned;
    tess_bytes_init(&planned);
    tess_reconstructor_bytes(plan, &planned);
    tess_memory_peak(engine->memory, tess_engine_scope(engine), &peak);
    CHECK_MSG(planned.total == peak.total, "planned %llu, counted %llu", (unsigned long long)planned.total,
              (unsigned long long)peak.total);
}

/* Twice with one plan: nothing of the first run is left in it. */
static void reconstruct_arrays(const char *model, const tess_reconstructor_settings *s,
                               const tess_image *measurements, float *out)
{
    handles h = open_handles(model, 2);
    tess_reconstructor *plan = NULL;
    tess_status status = tess_reconstructor_plan(h.model, s, &plan);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(h.context));
    tess_memory_reset_peak(h.model->opened->engine.memory);
    tess_image image;
    tess_image_init(&image, out, TESS_ELEMENT_F32, s->height, s->width, s->channels);
    image.depth = s->depth;
    const size_t size = (size_t)(s->depth * s->height * s->width * s->channels) * sizeof *out;
    float *first = malloc(size);
    for (int i = 0; i < 2 && status == TESS_OK; i++) {
        status = tess_reconstructor_run(plan, measurements, &image);
        CHECK_MSG(status == TESS_OK, "%s", tess_context_error(h.context));
        if (i == 0)
            memcpy(first, out, size);
    }
    CHECK(memcmp(first, out, size) == 0);
    free(first);
    tess_bytes taken;
    tess_bytes_init(&taken);
    tess_reconstructor_bytes(plan, &taken);
    CHECK(status != TESS_OK || (taken.total >= taken.weights && taken.weights > 0 && taken.workspace > 0));
    CHECK(status != TESS_OK || tess_reconstructor_seconds(plan) > 0);
    check_bytes(&h, plan);
    tess_reconstructor_release(plan);
    close_handles(&h);
}

static void deblurs(bool circular, double range)
{
    static float measured[MOST], mine[MOST], theirs[MOST];
    static double kernels[2 * 5 * 7];
    char json[512];
    draw(measured, 2 * N, N + 3, 3, 3);
    for (int64_t i = 0; i < 2 * N * (N + 3) * 3; i++)
        measured[i] *= (float)range;
    for (int i = 0; i < 2 * 5 * 7; i++)
        kernels[i] = 1 + i % (i < 35 ? 3 : 5);
    write_npy(name_of("k0.npy"), "<f8", 8, (const int64_t[]){5, 7, 0}, kernels);
    write_npy(name_of("k1.npy"), "<f8", 8, (const int64_t[]){5, 7, 0}, kernels + 35);
    write_npy(name_of("y.npy"), "<f4", 4, (const int64_t[]){2 * N, N + 3, 3}, measured);
    snprintf(json, sizeof json,
             "{\"operator\": \"blur\", \"kernels\": [\"k0.npy\", \"k1.npy\"], \"measurement\": \"y.npy\", "
             "\"boundary\": \"%s\"}",
             circular ? "circular" : "unknown");
    reconstruct_files(json, "drunet-color-small", 3, N * (N + 3) * 3, theirs);
    tess_reconstructor_settings s;
    tess_reconstructor_settings_init(&s);
    s.kind = TESS_OPERATOR_BLUR;
    s.height = N;
    s.width = N + 3;
    s.channels = 3;
    s.count = 2;
    s.kernels = kernels;
    s.kernel_height = 5;
    s.kernel_width = 7;
    s.circular = circular;
    s.iterations = 3;
    tess_image image;
    tess_image_init(&image, measured, TESS_ELEMENT_F32, N, N + 3, 3);
    image.depth = 2;
    reconstruct_arrays("drunet-color-small", &s, &image, mine);
    CHECK_MSG(memcmp(mine, theirs, N * (N + 3) * 3 * sizeof *mine) == 0, "%s blurs, range %g",
              circular ? "circular" : "open", range);
}

static void inverts_radon(void)
{
    static float sinogram[VIEWS * COLUMNS], mine[N * N], theirs[N * N];
    double angles[VIEWS];
    char json[2048] = "{\"operator\": \"radon\", \"measurement\": \"y.npy\", \"size\": 32, \"centre\": 19, "
                      "\"range\": [0, 2], \"angles\": [";
    for (int v = 0; v < VIEWS; v++) {
        angles[v] = 180.0 * v / VIEWS;
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s%.17g", v ? ", " : "", angles[v]);
        for (int x = 0; x < COLUMNS; x++) { /* a disc beside the axis */
            const double at = x - 19 - 5 * cos(angles[v] * PI / 180), chord = 36 - at * at;
            sinogram[v * COLUMNS + x] = chord > 0 ? (float)(2 * sqrt(chord)) : 0;
        }
    }
    strcat(json, "]}");
    write_npy(name_of("y.npy"), "<f4", 4, (const int64_t[]){VIEWS, COLUMNS, 0}, sinogram);
    reconstruct_files(json, "drunet-gray-small", 2, N * N, theirs);
    tess_reconstructor_settings s;
    tess_reconstructor_settings_init(&s);
    s.kind = TESS_OPERATOR_RADON;
    s.height = s.width = N;
    s.count = VIEWS;
    s.angles = angles;
    s.columns = COLUMNS;
    s.centre = 19;
    s.range_high = 2;
    s.iterations = 2;
    tess_image image;
    tess_image_init(&image, sinogram, TESS_ELEMENT_F32, VIEWS, COLUMNS, 1);
    reconstruct_arrays("drunet-gray-small", &s, &image, mine);
    CHECK(memcmp(mine, theirs, sizeof mine) == 0);
    CHECK(fabsf(mine[16 * N + 20] - 1) < 0.3f); /* in the disc */
}

/* So many views of a small image that the estimate of their noise takes more than the network. The loop counts
 * anew; a negative object is refused before it, and after the estimate. */
static void plans_noise(void)
{
    enum { SIDE = 8, WIDE = 64, MANY = 4000 };
    static float sinogram[MANY * WIDE], out[SIDE * SIDE];
    static double angles[MANY];
    for (int v = 0; v < MANY; v++) {
        angles[v] = 180.0 * v / MANY;
        for (int x = -3; x <= 3; x++)
            sinogram[v * WIDE + WIDE / 2 + x] = -(float)sqrt(16 - x * x);
    }
    tess_reconstructor_settings s;
    tess_reconstructor_settings_init(&s);
    s.kind = TESS_OPERATOR_RADON;
    s.height = s.width = SIDE;
    s.count = MANY;
    s.angles = angles;
    s.columns = WIDE;
    s.centre = WIDE / 2;
    tensor_list list = {0};
    add_conv(&list, "in_conv", 8, 1, 3, true);
    add_conv(&list, "conv_list.0", 8, 8, 3, true);
    add_conv(&list, "out_conv", 1, 8, 3, true);
    save_tensors(&list, name_of("small.safetensors"));
    handles h = open_handles(name_of("small.safetensors"), 2);
    tess_reconstructor *plan = NULL;
    const tess_status status = tess_reconstructor_plan(h.model, &s, &plan);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(h.context));
    tess_image measured, image;
    tess_image_init(&measured, sinogram, TESS_ELEMENT_F32, MANY, WIDE, 1);
    tess_image_init(&image, out, TESS_ELEMENT_F32, SIDE, SIDE, 1);
    tess_memory_reset_peak(h.model->opened->engine.memory);
    CHECK(tess_reconstructor_run(plan, &measured, &image) == TESS_BAD_INPUT &&
          strstr(tess_context_error(h.context), "negative"));
    check_bytes(&h, plan);
    tess_reconstructor_release(plan);
    close_handles(&h);
}

static void inverts_cone(void)
{
    enum { SIDE = 20, SOME = 10 };
    static float views[SOME * SIDE * SIDE], mine[DEPTH * DEPTH * DEPTH], theirs[DEPTH * DEPTH * DEPTH];
    double vectors[12 * SOME];
    tess_rays_circle(SOME, 32, 16, 1.5, vectors);
    for (int v = 0; v < SOME; v++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const double r = (x - 9.5) * (x - 9.5) + (y - 9.5) * (y - 9.5);
                views[(v * SIDE + y) * SIDE + x] = r < 25 ? (float)(2 * sqrt(25 - r)) : 0;
            }
    write_npy(name_of("vectors.npy"), "<f8", 8, (const int64_t[]){SOME, 12, 0}, vectors);
    write_npy(name_of("y.npy"), "<f4", 4, (const int64_t[]){SOME, SIDE, SIDE}, views);
    reconstruct_files("{\"operator\": \"cone\", \"vectors\": \"vectors.npy\", \"measurement\": \"y.npy\", "
                      "\"volume\": [16, 16, 16]}",
                      "drunet-gray-small", 2, DEPTH * DEPTH * DEPTH, theirs);
    tess_reconstructor_settings s;
    tess_reconstructor_settings_init(&s);
    s.kind = TESS_OPERATOR_CONE;
    s.depth = s.height = s.width = DEPTH;
    s.count = SOME;
    s.vectors = vectors;
    s.rows = s.columns = SIDE;
    s.iterations = 2;
    tess_image image;
    tess_image_init(&image, views, TESS_ELEMENT_F32, SIDE, SIDE, 1);
    image.depth = SOME;
    reconstruct_arrays("drunet-gray-small", &s, &image, mine);
    CHECK(memcmp(mine, theirs, sizeof mine) == 0);
}

#define REFUSES(change, text)                                                                                \
    do {                                                                                                     \
        tess_reconstructor_settings bad = good;                                                              \
        tess_reconstructor *plan = NULL;                                                                     \
        bad.change;                                                                                          \
        CHECK_MSG(tess_reconstructor_plan(h.model, &bad, &plan) == TESS_BAD_OPTION && !plan &&               \
                      strstr(tess_context_error(h.context), text),                                           \
                  "%s: %s", #change, tess_context_error(h.context));                                         \
    } while (0)

static void refuses_nonsense(void)
{
    handles h = open_handles("drunet-gray-small", 1);
    static const double kernel[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}, broken[9] = {NAN}, none[9] = {0};
    static float data[N * N];
    tess_reconstructor_settings good;
    tess_reconstructor_settings_init(&good);
    good.kind = TESS_OPERATOR_BLUR;
    good.height = good.width = N;
    good.count = 1;
    good.kernels = kernel;
    good.kernel_height = good.kernel_width = 3;
    REFUSES(kind = (tess_operator_kind)9, "kind");
    REFUSES(height = 0, "height");
    REFUSES(depth = 2, "depth");
    REFUSES(count = 0, "count");
    REFUSES(kernels = NULL, "kernels");
    REFUSES(kernels = broken, "finite");
    REFUSES(kernels = none, "");
    REFUSES(kernel_height = 2, "");
    REFUSES(element = (tess_element)0, "element");
    REFUSES(range_low = 5, "range");
    REFUSES(preset = "best", "preset");
    REFUSES(init = "guess", "init");
    REFUSES(spacing = -1, "spacing");
    REFUSES(kind = TESS_OPERATOR_RADON, "columns");
    REFUSES(kind = TESS_OPERATOR_CONE, "rows");
    tess_reconstructor *plan = NULL;
    tess_reconstructor_settings far = good;
    far.kind = TESS_OPERATOR_RADON;
    far.columns = N;
    far.angles = none;
    far.centre = 20 * N; /* the image's shadow misses the detector */
    CHECK(tess_reconstructor_plan(h.model, &far, &plan) == TESS_BAD_INPUT);
    CHECK_MSG(strstr(tess_context_error(h.context), "misses the detector"), "%s",
              tess_context_error(h.context));
    CHECK(tess_reconstructor_plan(NULL, &good, &plan) == TESS_BAD_OPTION);
    CHECK(tess_reconstructor_plan(h.model, NULL, &plan) == TESS_BAD_OPTION);
    CHECK(tess_reconstructor_plan(h.model, &good, NULL) == TESS_BAD_OPTION);
    CHECK(tess_reconstructor_plan(h.model, &good, &plan) == TESS_OK);
    tess_image image, small;
    tess_image_init(&image, data, TESS_ELEMENT_F32, N, N, 1);
    small = image;
    small.height--;
    CHECK(tess_reconstructor_run(NULL, &image, &image) == TESS_BAD_OPTION);
    CHECK(tess_reconstructor_run(plan, NULL, &image) == TESS_BAD_OPTION);
    CHECK(tess_reconstructor_run(plan, &image, &small) == TESS_BAD_OPTION);
    data[7] = INFINITY;
    CHECK(tess_reconstructor_run(plan, &image, &image) == TESS_BAD_INPUT);
    data[7] = 0;
    CHECK(tess_reconstructor_run(plan, &image, &image) == TESS_OK);
    tess_reconstructor_release(plan);
    tess_reconstructor_release(NULL);
    close_handles(&h);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    deblurs(true, 1);
    deblurs(false, 1);
    deblurs(false, 900);
    inverts_radon();
    plans_noise();
    inverts_cone();
    refuses_nonsense();
    static const char *const files[] = {"k0.npy",  "k1.npy",           "y.npy", "vectors.npy", "problem.json",
                                        "out.npy", "small.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(name_of(files[i]));
    rmdir(folder);
    return check_end();
}
