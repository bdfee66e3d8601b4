// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "ns3/network-module.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <numeric>
#include <vector>

/// What happens at the bottleneck queue, in total and after the warm-up.
class QueueMonitor
{
  public:
    void Attach(ns3::Ptr<ns3::Queue<ns3::Packet>> queue)
    {
        queue->TraceConnectWithoutContext("Enqueue", ns3::MakeCallback(&QueueMonitor::Enqueued, this));
        queue->TraceConnectWithoutContext("Dequeue", ns3::MakeCallback(&QueueMonitor::Dequeued, this));
        queue->TraceConnectWithoutContext("Drop", ns3::MakeCallback(&QueueMonitor::Dropped, this));
    }

    void Print(const char* name, bool steady) const
    {
        const size_t first = steady ? m_waitsBefore : 0;
        std::vector<float> waits(m_waitsMs.begin() + first, m_waitsMs.end());
        const double mean = waits.empty() ? 0.0
                                          : std::accumulate(waits.begin(), waits.end(), 0.0) /
                                                static_cast<double>(waits.size());
        double p95 = 0.0;
        if (!waits.empty())
        {
            auto rank = waits.begin() + static_cast<ptrdiff_t>(0.95 * (waits.size() - 1));
            std::nth_element(waits.begin(), rank, waits.end());
            p95 = *rank;
        }
        const uint64_t offered = m_offered - (steady ? m_offeredBefore : 0);
        const uint64_t dropped = m_dropped - (steady ? m_droppedBefore : 0);
        std::printf("  \"%s\": {\"offered_packets\": %lu, \"dropped_packets\": %lu, \"loss_ratio\": %.9f, "
                    "\"queue_delay_mean_ms\": %.6f, \"queue_delay_p95_ms\": %.6f},\n",
                    name, offered, dropped,
                    offered ? static_cast<double>(dropped) / static_cast<double>(offered) : 0.0, mean, p95);
    }

    /// Called once, at the end of the warm-up.
    void Mark()
    {
        m_waitsBefore = m_waitsMs.size();
        m_offeredBefore = m_offered;
        m_droppedBefore = m_dropped;
    }

  private:
    void Enqueued(ns3::Ptr<const ns3::Packet>)
    {
        ++m_offered;
        m_entered.push_back(ns3::Simulator::Now().GetNanoSeconds());
    }

    void Dequeued(ns3::Ptr<const ns3::Packet>)
    {
        const int64_t waited = ns3::Simulator::Now().GetNanoSeconds() - m_entered.front();
        m_entered.pop_front();
        m_waitsMs.push_back(static_cast<float>(waited * 1e-6));
    }

    void Dropped(ns3::Ptr<const ns3::Packet>)
    {
        ++m_offered;
        ++m_dropped;
    }

    std::deque<int64_t> m_entered; // arrival times of the packets waiting, ns
    std::vector<float> m_waitsMs;
    uint64_t m_offered{0};
    uint64_t m_dropped{0};
    uint64_t m_offeredBefore{0};
    uint64_t m_droppedBefore{0};
    size_t m_waitsBefore{0};
};
