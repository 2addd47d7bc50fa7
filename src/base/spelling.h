/* spelling.h: how far a mistyped name is from a known one, for "did you mean". */
#ifndef TESS_BASE_SPELLING_H
#define TESS_BASE_SPELLING_H

/* Levenshtein's distance; more than any limit for words of more than 32 letters. */
int tess_spelling_distance(const char *one, const char *other);
/* The distance from which on a name is another word: about half of a short word, four letters of a long one. */
int tess_spelling_limit(const char *typed);

#endif
