#include <stddef.h>

#include "cli.h"
#include "tessera_report.h"

#define AT(field) offsetof(tess_report_settings, field)

static const cli_option options[] = {
    {"--output", "F.html", cli_text, AT(output), "the page (required); -o does the same", CLI_FILES,
     .letter = "-o"},
    {"--title", "TEXT", cli_text, AT(title), "title of the page (default: Tessera report)"},
    {"--without-pictures", NULL, cli_flag, AT(without_pictures),
     "leave out the pictures of files that records name"},
};

static int run(int argc, char **argv, bool plan)
{
    (void)plan;
    cli_shared shared;
    tess_report_settings settings;
    tess_context *context = NULL;
    tess_report_settings_init(&settings);
    int count, status = cli_parse(&cli_report, argc, argv, &shared, &settings, &count);
    if (status >= 0)
        return status;
    if (!settings.output)
        return cli_complain("report: the page to write is missing: -o report.html");
    settings.common = shared.common;
    settings.inputs = (const char *const *)argv;
    settings.input_count = count;
    status = cli_record_apart(&shared, &settings.output, 1);
    if (status < 0)
        status = cli_begin(&shared, true, NULL, &context);
    if (status >= 0)
        return status;
    cli_progress_connect(&settings.common, &shared);
    settings.common.progress = cli_poll;
    char *record = NULL;
    const tess_status result = tess_report(context, &settings, &record);
    return cli_finish(context, result, record, &shared);
}

const cli_verb cli_report = {
    .name = "report",
    .what = "one interactive page (HTML) from records of any verb or study",
    .usage = "RECORDS... -o REPORT.html",
    .text =
        "Reads the records that --json and the studies write, those of training logs and of other programs "
        "included (JSON objects, one a line), and writes one page with charts, tables and pictures that "
        "opens in "
        "any browser, also offline. What the page shows is chosen by what the records hold. Two files: the "
        "page "
        "also says what changed from the first to the second. Traces (--trace) may be among the files: the "
        "page shows them as timelines. docs/report.md tells more.",
    .example = "tessera report size.jsonl size_torch.jsonl -o report.html",
    .choices = CLI_FILES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .least = 1,
    .most = -1,
    .run = run,
};
