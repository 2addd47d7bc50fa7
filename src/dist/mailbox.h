/* mailbox.h: messages between the ranks of one host through memory that they share.
 *
 * The sender copies a message and goes on; the receiver copies it again when it needs it. Neither waits for the other, and no library
 * has to be called in between. Two messages from one rank to another may be under way: the third waits until the first is taken.
 *
 * Each rank has a segment with a channel to every rank of its host, and a data area that the transfers of one exchange divide among
 * them. One exchange of a rank uses it at a time. Its name is removed as soon as all ranks have mapped it, so nothing is left behind. */
#ifndef TESS_DIST_MAILBOX_H
#define TESS_DIST_MAILBOX_H

#include "dist/dist.h"

typedef struct tess_mailboxes tess_mailboxes;

/* Collective. Leaves dist->mailboxes NULL, on all ranks, where a rank has no memory to share or TESSERA_SHARED_MEMORY is 0. */
tess_status tess_mailboxes_open(tess_dist *dist, tess_error *error) TESS_MUST_CHECK;
void tess_mailboxes_close(tess_dist *dist);

/* Gives the segment to an exchange with up to `most` peers. False: another exchange has it, or there is none. */
bool tess_mailboxes_take(tess_mailboxes *boxes, int most); /* accepts NULL */
void tess_mailboxes_leave(tess_mailboxes *boxes);

/* Whether a message of this size between this rank and a peer passes here. Both sides get the same answer. */
bool tess_mailboxes_carry(const tess_mailboxes *boxes, int peer, size_t bytes);
/* Copies a message into the segment. False: there is no room yet. */
bool tess_mailboxes_post(tess_mailboxes *boxes, int peer, const void *data, size_t bytes);
/* Takes the next message of a peer. False: it is not there yet. */
bool tess_mailboxes_fetch(tess_mailboxes *boxes, int peer, void *data, size_t bytes);

#endif
