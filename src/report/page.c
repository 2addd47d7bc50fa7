#include "report/page.h"

#include <string.h>

#include "base/mem.h"
#include "report/embed.h"
#include "report/parts.h"

tess_status tess_page_check(tess_error *error)
{
    if (tess_page_chart.bytes)
        return TESS_OK;
    return tess_fail(error, TESS_UNSUPPORTED,
                     "this program was built without a chart library; install Chart.js (Debian: "
                     "libjs-chart.js) and build it again");
}

static void write_part(FILE *to, const tess_page_part *part)
{
    (void)!fwrite(part->data, 1, part->bytes, to); /* the caller asks ferror */
}

static tess_status write_json(FILE *to, tess_json *value, tess_error *error)
{
    char *text = tess_json_dump(value, false);
    tess_json_free(value);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the page");
    tess_embed_json(to, text, strlen(text));
    tess_small_free(text);
    return TESS_OK;
}

static tess_json *file_record(const tess_stored_file *file)
{
    tess_json *object = tess_json_object();
    const char *slash = strrchr(file->path, '/');
    tess_json_set_string(&object, "name", slash ? slash + 1 : file->path);
    tess_json_set_int(&object, "lines", file->facts.lines);
    tess_json_set_int(&object, "kept", file->kept);
    tess_json_set_int(&object, "stride", file->stride);
    tess_json_set_int(&object, "not_numbers", file->facts.not_numbers);
    tess_json_set_bool(&object, "cut_short", file->facts.cut_short);
    return object;
}

static void write_record(FILE *to, const tess_stored *record)
{
    fprintf(to, "{\"file\":%d,\"line\":%lld,\"shortened\":%s,\"record\":", record->file,
            (long long)record->line, record->shortened ? "true" : "false");
    tess_embed_json(to, record->text, record->bytes);
    fputs("}", to);
}

static tess_status write_picture(FILE *to, const tess_picture *picture, tess_error *error)
{
    tess_json *about = tess_json_object();
    tess_json_set_int(&about, "record", picture->record);
    tess_json_set_string(&about, "role", picture->role);
    tess_json_set_string(&about, "name", picture->name);
    tess_json_set_string(&about, "shown", picture->shown);
    tess_json_set_int(&about, "width", picture->width);
    tess_json_set_int(&about, "height", picture->height);
    fputs("{\"about\":", to);
    TESS_TRY(write_json(to, about, error));
    fputs(",\"png\":\"", to);
    tess_embed_base64(to, picture->png, picture->bytes);
    fputs("\"}", to);
    return TESS_OK;
}

static tess_status write_data(FILE *to, const tess_store *store, const tess_pictures *pictures,
                              const tess_timelines *timelines, tess_error *error)
{
    fprintf(to,
            "<script type=\"application/json\" id=\"data\">{\"version\":\"%s\",\"files\":", TESSERA_VERSION);
    tess_json *files = tess_json_array();
    for (int i = 0; i < store->file_count; i++)
        tess_json_append(&files, file_record(&store->files[i]));
    TESS_TRY(write_json(to, files, error));
    fputs(",\n\"records\":[", to);
    for (int64_t i = 0; i < store->count; i++) {
        fputs(i ? ",\n" : "\n", to);
        write_record(to, &store->records[i]);
    }
    fputs("],\n\"pictures\":[", to);
    for (int i = 0; i < pictures->count; i++) {
        fputs(i ? ",\n" : "\n", to);
        TESS_TRY(write_picture(to, &pictures->list[i], error));
    }
    fputs("],\n\"timelines\":[", to);
    for (int i = 0; i < timelines->count; i++) {
        fputs(i ? ",\n" : "\n", to);
        tess_embed_json(to, timelines->list[i].text, timelines->list[i].bytes);
    }
    fputs("]}</script>\n", to);
    return TESS_OK;
}

/* The policy lets a browser run the two scripts of this page and nothing else, and fetch nothing, even if some text of a
 * record became markup. */
static void write_head(FILE *to, const char *title)
{
    fprintf(
        to,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-%s' "
        "'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"generator\" content=\"tessera %s\">\n<title>",
        tess_page_chart.sha256, tess_page_script.sha256, tess_page_style.sha256, TESSERA_VERSION);
    tess_embed_text(to, title);
    fputs("</title>\n<style>", to);
    write_part(to, &tess_page_style);
    fputs("</style>\n</head>\n<body>\n<div id=\"page\"></div>\n<noscript><p>This page draws its charts with "
          "JavaScript, which is switched off.</p></noscript>\n",
          to);
}

tess_status tess_page_write(FILE *to, const char *title, const tess_store *store,
                            const tess_pictures *pictures, const tess_timelines *timelines, tess_error *error)
{
    TESS_TRY(tess_page_check(error));
    write_head(to, title);
    TESS_TRY(write_data(to, store, pictures, timelines, error));
    fputs("<script>", to);
    write_part(to, &tess_page_chart);
    fputs("</script>\n<script>", to);
    write_part(to, &tess_page_script);
    fputs("</script>\n</body>\n</html>\n", to);
    return TESS_OK;
}
