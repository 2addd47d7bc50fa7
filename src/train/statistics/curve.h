/* curve.h: area under the ROC curve, average precision, and the counts of decisions, of all pixels of a set together,
 * exactly, from two readings of the scores.
 *
 * Anomalies are few, so their scores are kept: the first reading collects and then sorts them, the second counts the other
 * scores between them. That is all that both figures need, ties included:
 *     AUROC = sum over positives of (negatives below + half of the negatives equal) / (P N), Mann and Whitney;
 *     AP = sum over distinct positive scores, descending, of (recall - recall before) * precision. */
#ifndef TESS_TRAIN_STATISTICS_CURVE_H
#define TESS_TRAIN_STATISTICS_CURVE_H

#include "base/mem.h"

typedef struct tess_curve {
    tess_memory *memory;
    tess_block scores; /* fp32, of the anomalies */
    tess_block
        counts; /* for each distinct score: positives, negatives equal, negatives below it and above the one before */
    int64_t positives, negatives, capacity, distinct;
    int64_t left_out; /* pixels without a score */
} tess_curve;

typedef struct tess_curve_result {
    bool known; /* false: no anomalies, or nothing else */
    double auroc, average_precision;
    int64_t positives, negatives;
} tess_curve_result;

void tess_curve_begin(tess_curve *curve, tess_memory *memory);
/* First reading: scores and truth, 1 for an anomaly. NaN is left out. */
tess_status tess_curve_collect(tess_curve *curve, const float *scores, const uint8_t *truth, int64_t count,
                               tess_error *error) TESS_MUST_CHECK;
tess_status tess_curve_sort(tess_curve *curve, tess_error *error) TESS_MUST_CHECK;
/* Second reading, the same values. */
void tess_curve_count(tess_curve *curve, const float *scores, const uint8_t *truth, int64_t count);
tess_curve_result tess_curve_end(const tess_curve *curve);
/* The ROC curve as at most `most` points (3 or more) of rate of false alarms and recall, from (0, 0) to (1, 1), evenly along it:
 * pairs to `points`. Returns how many; 0 if the curve is not known. */
int tess_curve_points(const tess_curve *curve, int most, double *points);
void tess_curve_free(tess_curve *curve);

/* Decisions against the truth. */
typedef struct tess_confusion {
    int64_t true_positives, false_positives, false_negatives, true_negatives;
} tess_confusion;
/* A score of NaN is left out. */
void tess_confusion_add(tess_confusion *sums, const float *scores, double threshold, const uint8_t *truth,
                        int64_t count);
/* 0 where nothing can be divided by. */
double tess_confusion_precision(const tess_confusion *c);
double tess_confusion_recall(const tess_confusion *c);
double tess_confusion_f1(const tess_confusion *c);
double tess_confusion_iou(const tess_confusion *c);

#endif
