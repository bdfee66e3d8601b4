/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The kernel's own CUBIC, for flows that the policy does not drive.
 *
 * A controller with cong_control has to do what the kernel does around cong_avoid: nothing of it happens by itself.
 */
#ifndef ASTRAEA_FALLBACK_H
#define ASTRAEA_FALLBACK_H

#include "fixed.h"
#include "maps.h"

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, u8 state) __ksym;
/* A kernel has one of these: tcp.h. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static inline u32 in_flight_of(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/*
 * Packets found lost since the last look: timers find some between acknowledgements, and a rate_sample counts only what its
 * own acknowledgement has shown.
 */
static inline u32 newly_lost(struct flow *f, const struct tcp_sock *tp)
{
	u32 lost = tp->lost - f->lost;

	f->lost = tp->lost;
	return lost;
}

/* Packets that were in flight before the acknowledgement under way, whatever it has shown to have arrived or to be lost. */
static inline u32 flight_before(const struct flow *f, const struct tcp_sock *tp)
{
	return in_flight_of(tp) + (tp->delivered - f->delivered) + (tp->lost - f->lost);
}

/* When the receiver sent the acknowledgement under way, by its clock in ns, whose 32 bits in a packet wrap; 0: not told. */
static inline u64 stamp_of(struct flow *f, const struct tcp_sock *tp)
{
	u32 ticks = tp->rx_opt.rcv_tsval;

	if (!ticks)
		return 0;
	f->stamp = f->stamp ? f->stamp + (s64)(s32)(ticks - (u32)f->stamp) : ticks;
	return MS * f->stamp;
}

/* Proportional rate reduction (RFC 6937 with its slow-start bound). */
static inline u32 reduced_cwnd(struct tcp_sock *tp, struct flow *f, u32 acked, bool advanced, bool lost)
{
	u32 flight = in_flight_of(tp), target = tp->snd_ssthresh, sent = tp->prr_out, send;

	f->prr_delivered += acked;
	if (flight > target) {
		u64 due = (u64)target * f->prr_delivered;
		u32 prior = max(tp->prior_cwnd, 1u);

		send = less((due + prior - 1) / prior, sent);
	} else {
		send = max((u32)less(f->prr_delivered, sent), acked);
		if (advanced && !lost)
			send++;
		send = min(send, target - flight);
	}
	return flight + max(send, sent ? 0u : 1u);
}

/* What tcp_update_pacing_rate() does where there is no cong_control. */
static inline void pace_as_cubic(struct sock *sk, struct tcp_sock *tp)
{
	u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	u64 window = max(tp->snd_cwnd, tp->packets_out);
	u64 rate = percent * window * tp->mss_cache * 80000 / max(tp->srtt_us, 1u);

	sk->sk_pacing_rate = min(rate, (u64)sk->sk_max_pacing_rate);
}

static inline void fallback_control(struct sock *sk, struct tcp_sock *tp, struct flow *f, u32 ack, int flag, u32 acked,
				    u32 lost)
{
	if (f && (f->state == TCP_CA_CWR || f->state == TCP_CA_Recovery)) {
		if (acked)
			tp->snd_cwnd = max(1u, reduced_cwnd(tp, f, acked, flag & FLAG_SND_UNA_ADVANCED, lost > 0));
	} else if (acked) {
		cubictcp_cong_avoid(sk, ack, acked);
	}
	pace_as_cubic(sk, tp);
}

/* As tcp_end_cwnd_reduction(): the window is what was reduced to, unless the kernel has undone it. */
static inline void fallback_end_reduction(struct tcp_sock *tp, const struct flow *f)
{
	bool reduced = f->state == TCP_CA_CWR || (f->state == TCP_CA_Recovery && tp->undo_marker);

	if (reduced && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		tp->snd_cwnd = max(tp->snd_ssthresh, 1u);
}

/* A flow of which nothing can be kept, for want of memory, cannot spread a reduction over a round trip. */
static inline void fallback_reduce_at_once(struct tcp_sock *tp, u8 state)
{
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		tp->snd_cwnd = max(min(tp->snd_cwnd, tp->snd_ssthresh), 1u);
}

/* There is data again after a pause (RFC 5681 section 4.1): the kernel leaves this to a cong_control too. */
static inline void fallback_restart(struct tcp_sock *tp, u64 idle, u64 rto)
{
	u32 cwnd = tp->snd_cwnd, restart = min(cwnd, 10u);

	if (idle <= rto)
		return;
	tp->snd_ssthresh = max(tp->snd_ssthresh, (cwnd >> 1) + (cwnd >> 2));
	tp->snd_cwnd = max(cwnd >> min(idle / max(rto, 1ull), 31ull), restart);
}

#endif
