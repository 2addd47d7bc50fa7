/* nearest.h: how far a misspelt word is from one that exists, for messages that say what was probably meant. */
#ifndef TESS_BASE_NEAREST_H
#define TESS_BASE_NEAREST_H

/* Levenshtein's distance; `most` + 1 for long words, which are never near. */
int tess_word_distance(const char *a, const char *b, int most);
/* A word at this distance or more is not what was meant: half of a short word may be wrong, at most three letters of a
 * long one. */
int tess_word_limit(const char *word);

#endif
