#include "frontend/rank_choice.h"

double rank_choice_score(const rank_choice_candidate_t *candidate)
{
    double own = (double)candidate->client_count * (double)candidate->in_flight;
    if (!candidate->has_load || (candidate->client_count == 1 && candidate->in_flight == 0))
        return own;
    double waiting = (double)candidate->load.waiting;
    double reported = waiting + (double)candidate->load.running;
    double full = candidate->load.kv_cache_usage - 0.5;
    double score = own > reported ? own : reported;
    return full > 0.0 ? score + waiting * 6.0 * full : score;
}

int64_t rank_choice_pick(const rank_choice_candidate_t *candidates, uint32_t count, uint32_t *turn)
{
    int64_t best = -1;
    double best_score = 0.0;
    uint32_t start = count > 0 ? *turn % count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (start + i) % count;
        if (!candidates[at].ready)
            continue;
        double score = rank_choice_score(&candidates[at]);
        if (best < 0 || score < best_score) {
            best = at;
            best_score = score;
        }
    }
    if (best >= 0)
        *turn = (uint32_t)best + 1;
    return best;
}
