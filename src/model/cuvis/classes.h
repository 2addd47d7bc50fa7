/* classes.h: the table of cuvis.ai's classes, private to this folder. */
#ifndef TESS_MODEL_CUVIS_CLASSES_H
#define TESS_MODEL_CUVIS_CLASSES_H

#include "model/cuvis/cuvis.h"

enum { TESS_CUVIS_PARTS = 3 };

typedef enum tess_cuvis_role {
    TESS_CUVIS_KIND,  /* a node of ours */
    TESS_CUVIS_DATA,  /* gives the cube */
    TESS_CUVIS_PASS,  /* changes nothing */
    TESS_CUVIS_HELPER /* holds a parameter of another node, which reads it at its port `helper` */
} tess_cuvis_role;

/* How a buffer becomes a parameter. */
typedef enum tess_cuvis_how {
    TESS_CUVIS_COPY,
    TESS_CUVIS_SYMMETRIC,  /* of a quadratic form: only its symmetric part counts */
    TESS_CUVIS_COVARIANCE, /* the (pseudo-)inverse of the buffer */
    TESS_CUVIS_HELPED,     /* a buffer of the helper */
    TESS_CUVIS_SETTING     /* no buffer: the value of our setting of this name */
} tess_cuvis_how;

typedef struct tess_cuvis_part {
    const char *buffer; /* NULL ends a list */
    const char *part;
    tess_cuvis_how how;
} tess_cuvis_part;

/* One node of the YAML while its settings are translated. */
typedef struct tess_cuvis_entry {
    const char *name;
    const tess_json *hparams; /* may be NULL */
    const tess_cuvis_facts *facts;
    const tess_json *helper; /* hparams of the helper; may be NULL */
    bool has_wavelengths;    /* its port is connected */
    const char *kind;        /* may be changed */
    tess_json *settings;     /* of the node of ours */
} tess_cuvis_entry;

struct tess_cuvis_class {
    const char *name; /* without the module, which moved between versions */
    tess_cuvis_role role;
    const char *kind;
    const char *inputs,
        *outputs; /* the names of ports; the first is the one that passes spectra, scores, decisions on */
    const char *hparams; /* the names that are known */
    tess_status (*translate)(tess_cuvis_entry *entry, tess_error *error);
    tess_cuvis_part parts[TESS_CUVIS_PARTS + 1];
    const char *helper; /* a port; NULL: there is none */
};

/* By "package.module.Class"; NULL: we have no such node. */
const tess_cuvis_class *tess_cuvis_find(const char *class_name);
/* Whether the list of words has this one. */
bool tess_cuvis_has_word(const char *list, const char *word, size_t length);
/* Fills kind and settings. */
tess_status tess_cuvis_translate(const tess_cuvis_class *class, tess_cuvis_entry *entry,
                                 tess_error *error) TESS_MUST_CHECK;

/* settings.c: one function for each class that has settings. */
tess_status tess_cuvis_minmax(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_zscore_set(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_zscore_image(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_sigmoid(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_unit_norm(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_snv(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_savitzky_golay(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_bandpass(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_pca(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_selector(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_mlp(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_svdd(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_rx_set(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_rx_image(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_lad(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_logit(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_binary(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_quantile(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;
tess_status tess_cuvis_two_stage(tess_cuvis_entry *entry, tess_error *error) TESS_MUST_CHECK;

/* centre.c: sets the centre of the score node, in the data behind the last cut, from its mean, which is behind the whole
 * chain. */
tess_status tess_cuvis_centre(tess_memory *memory, tess_spectral_state *state, int node,
                              tess_error *error) TESS_MUST_CHECK;
/* quadratic.c: a matrix of a quadratic form, c x c, as our node stores it. `name` is for messages. */
tess_status tess_cuvis_square(tess_memory *memory, tess_cuvis_how how, const char *name, double *square,
                              int channels, tess_error *error) TESS_MUST_CHECK;

#endif
