/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What this program uses of the kernel's types: loading finds the places of the fields (CO-RE), so few have to be named. */
#ifndef ASTRAEA_TCP_H
#define ASTRAEA_TCP_H

#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

enum tcp_ca_event { CA_EVENT_TX_START };

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct tcp_options_received {
	u32 rcv_tsval;
};

struct tcp_sock {
	struct tcp_options_received rx_opt;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_wnd;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prr_out;
	u32 srtt_us;
	u32 rttvar_us;
	u32 mss_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 lost;
	u32 undo_marker;
	u64 tcp_wstamp_ns;
};

struct rate_sample {
	u32 prior_delivered;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
};

struct ack_sample {
	u32 pkts_acked;
};

struct seq_file;

struct tcp_congestion_ops {
	/* Before Linux 7.1 an event of cwnd_event: the loader clears the one that the kernel lacks or does not call. */
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	char name[16];
	u32 flags;
};

#pragma clang attribute pop

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_INFINITE_SSTHRESH 0x7fffffff

enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define FLAG_SND_UNA_ADVANCED 0x400
#define AF_INET 2

#endif
